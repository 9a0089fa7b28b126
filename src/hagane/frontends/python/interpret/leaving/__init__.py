"""How paths leave blocks: exceptions, context managers, and code that runs in any case."""
