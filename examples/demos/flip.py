"""Change one bit of a file: python flip.py FILE BYTE"""

import sys

with open(sys.argv[1], "r+b") as file:
    file.seek(int(sys.argv[2]))
    (old,) = file.read(1)
    file.seek(-1, 1)
    file.write(bytes([old ^ 1]))
print(f"byte {sys.argv[2]}: {old:02x} is now {old ^ 1:02x}")
