"""English texts as they are said: numbers, forms, readings and sounds."""
