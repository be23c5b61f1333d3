"""The explorer of voices: a catalogue in which a sentence is heard in the voices that were chosen."""
