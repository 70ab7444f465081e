#!/bin/sh
# Run by mmdebstrap when all packages are configured; $1 is the folder of the new system.
set -eu
# What the essential packages brought before dpkg was told to leave it out.
find "$1/usr/share/doc" ! -type d ! -name copyright -delete
find "$1/usr/share/info" "$1/usr/share/lintian" "$1/usr/share/locale" "$1/usr/share/man" \
  -mindepth 1 ! -type d ! -name locale.alias -delete
find "$1/usr/share/doc" "$1/usr/share/info" "$1/usr/share/lintian" "$1/usr/share/locale" "$1/usr/share/man" \
  -mindepth 1 -type d -empty -delete

ln -s python3 "$1/usr/bin/python"
printf '127.0.0.1\tlocalhost\n' > "$1/etc/hosts"
# Each sandbox gets its own.
: > "$1/etc/machine-id"
rm -f "$1/var/lib/dbus/machine-id" "$1"/etc/*- "$1"/var/log/*.log "$1"/var/log/apt/* "$1"/var/cache/ldconfig/aux-cache
