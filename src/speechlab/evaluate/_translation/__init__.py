"""The study of translations: scored with references and without, by setting, and timed."""
