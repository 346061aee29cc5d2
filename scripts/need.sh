#!/usr/bin/env bash
# Installs what the tests need and the machine lacks: a C compiler for the race detector, and redis-server, of which no
# service is left running on 6379.
set -euo pipefail

root=()
[ "$(id -u)" = 0 ] || root=(sudo)
updated=

apt() {
	[ -n "$updated" ] || ${root[@]+"${root[@]}"} apt-get update -qq
	updated=yes
	${root[@]+"${root[@]}"} env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" </dev/null >/dev/null
}

has() { command -v "$1" >/dev/null; }

if ! has gcc && ! has clang; then
	if ! has apt-get; then
		echo "there is no C compiler, and no apt-get to install one with: the race detector needs gcc or clang" >&2
		exit 1
	fi
	echo "a C compiler is missing; installing the packages gcc and libc6-dev"
	apt gcc libc6-dev
fi

if ! has redis-server; then
	if has apt-get; then
		# The package redis-server would start a service. Its program is only a link to one in redis-tools, which is the
		# server when it is called by the server's name.
		echo "redis-server is missing; installing the package redis-tools, and the link /usr/local/bin/redis-server"
		apt redis-tools
		${root[@]+"${root[@]}"} ln -sf /usr/bin/redis-check-rdb /usr/local/bin/redis-server
	elif has brew; then
		echo "redis-server is missing; installing it: brew install redis"
		brew install --quiet redis </dev/null
	else
		echo "redis-server is missing, and there is neither apt-get nor brew to install it with: put it into PATH" >&2
		exit 1
	fi
fi
redis-server --version
