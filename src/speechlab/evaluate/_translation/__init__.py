"""The study of translations: scored with references and without, by system, and timed."""
