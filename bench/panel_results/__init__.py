"""The big panel's results as a document: evidence from a published file, tables, findings beside the paper's."""
