"""The choice of a voice: the study of voices, its ranking, and its advice."""
