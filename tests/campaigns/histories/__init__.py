"""Random tables and statements: one drawer, one model of what they leave, one judge.

``drawing`` draws tables and statements, spelled by ``spelling``, on columns and values of
``tests.writer``, whose ``history`` draws the tables that other writers leave in files. A statement
comes with what it does to the rows of ``model``: plain values by field id. ``judge`` runs a history,
takes what was committed into the model, commit by commit, and compares it with what is read: main,
branches, tags, every snapshot, row ids, needed files (``files``), promises of maintenance
(``upkeep``), and what PyIceberg reads.

Three histories are drawn: ``beside`` another writer that comes in at ``moments`` inside of
statements, by ``others`` and through a gateway; ``killed`` at these moments; and ``alone``, with
every kind of statement. ``command`` runs many of them.
"""
