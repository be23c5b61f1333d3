"""Classes of differences in languages in which one sound is written in many ways."""
