"""Samples that tests of several rooms send."""

KEY = "sl:canary-7f3a91c2e5d84b60"
VOICE = {
    "id": "0f8fad5b-d9cb-469f-a165-70867728950e",
    "description": "Calm, Japanese",
    "language": "ja",
    "gender": "Female",
    "formats": ["wav", "mp3", "pcm", "ogg", "flac"],
    "sample_rates": [16000, 24000],
    "streaming": True,
}
VOICE_ID = VOICE["id"]
