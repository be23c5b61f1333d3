"""The choice of a voice: the study of voices, its ranking, and its advice; and which of its lines are ready."""
