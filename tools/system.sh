#!/usr/bin/env bash
# Makes sure that something which pip cannot install is there: tools/system.sh java
set -eu

have_java() { command -v java >/dev/null && java -version 2>&1 | grep -qE 'version "(1[7-9]|2[0-9])'; }
have_node() { command -v npm >/dev/null && command -v node >/dev/null; }
have_chromium() { command -v chromium || command -v chromium-browser || command -v google-chrome; } >/dev/null

case "${1:-}" in
  java)
    have_java && exit 0
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
      apt-get update -qq && apt-get install -qq -y default-jre-headless >/dev/null
      have_java && exit 0
    fi
    echo "Spark needs Java 17 or newer: install it (Debian: apt-get install default-jre-headless), then run again." >&2
    exit 1
    ;;
  chromium)
    have_chromium && exit 0
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
      apt-get update -qq && apt-get install -qq -y chromium >/dev/null
      have_chromium && exit 0
    fi
    echo "The report is tested in Chromium: install it (Debian: apt-get install chromium), then run again." >&2
    exit 1
    ;;
  node)
    have_node && exit 0
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
      apt-get update -qq && apt-get install -qq -y nodejs npm >/dev/null
      have_node && exit 0
    fi
    echo "The GitHub Action is checked by tools from npm: install Node (Debian: apt-get install nodejs npm), then run again." >&2
    exit 1
    ;;
  *)
    echo "usage: tools/system.sh java|chromium|node" >&2
    exit 2
    ;;
esac
