#!/usr/bin/env bash
# Makes sure that redis-server can be run, and installs it where it cannot. Never leaves a service running on 6379.
set -euo pipefail

if command -v redis-server >/dev/null; then
	echo "redis-server is here: $(redis-server --version)"
	exit 0
fi

if command -v apt-get >/dev/null; then
	# The package redis-server would start a service. Its program is only a link to one in redis-tools, which is the
	# server when it is called by the server's name.
	root=()
	[ "$(id -u)" = 0 ] || root=(sudo)
	echo "redis-server is missing; installing the package redis-tools, and the link /usr/local/bin/redis-server"
	${root[@]+"${root[@]}"} apt-get update -qq
	${root[@]+"${root[@]}"} env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends redis-tools </dev/null >/dev/null
	${root[@]+"${root[@]}"} ln -sf /usr/bin/redis-check-rdb /usr/local/bin/redis-server
elif command -v brew >/dev/null; then
	echo "redis-server is missing; installing it: brew install redis"
	brew install --quiet redis </dev/null
else
	echo "redis-server is missing, and there is neither apt-get nor brew to install it with: put it into PATH" >&2
	exit 1
fi
echo "redis-server is here now: $(redis-server --version)"
