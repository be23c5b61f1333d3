"""A package that is not installed, as far as the tests are concerned.

jsonschema, which Jupyter imports, would import it and compile 38 grammars of internationalised addresses: two to five
seconds of processor time in each process. No notebook has such an address.
"""

raise ImportError("the tests do without it")
