"""Two-round calls by the thousand, with repeats, while connections are cut and processes killed.

At the end every call has ended as it should (none is lost), no node ran twice but where its process
was killed (none is doubled), and what the processes hold has not grown.
"""
