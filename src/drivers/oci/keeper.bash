# Starts runtime processes for the server, which is too large to fork cheaply. A request is a list of words, each ended
# by NUL and all by an empty one: a FIFO for the streams of the process, then its command. Nothing is evaluated.
# Ends with its standard input, and so with the server.

# Otherwise bash would have the processes ignore SIGINT, and with them every program in a cell.
set -m
while IFS= read -r -d '' log; do
  words=()
  while IFS= read -r -d '' word && [[ -n $word ]]; do words+=("$word"); done
  # Never /dev/null: crun gives its standard streams to the cell's user, and would do so with the host's /dev/null.
  "${words[@]}" <>"$log" >&0 2>&0 &
done
