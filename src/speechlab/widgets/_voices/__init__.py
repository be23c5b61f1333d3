"""The voice explorer: a catalogue that plays a sentence in the selected voices."""
