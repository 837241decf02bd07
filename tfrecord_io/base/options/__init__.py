"""The keywords of reading and writing calls: frozen dataclasses, validated once.

Defaults are defined here and nowhere else.
"""
