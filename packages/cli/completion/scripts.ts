/** Completion scripts: each asks `aenv __complete -- WORDS` for the candidates of the last word. */
export const COMPLETION_SCRIPTS: Readonly<Record<string, string>> = {
  bash: `_aenv() {
  local IFS=$'\\n'
  COMPREPLY=($("\${COMP_WORDS[0]}" __complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _aenv aenv
`,
  zsh: `#compdef aenv
_aenv() {
  local -a found
  found=("\${(@f)$("\${words[1]}" __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n "\${found[1]}" ]]; then compadd -- "\${found[@]}"; else _files; fi
}
compdef _aenv aenv
`,
  fish: `function __aenv_candidates
  set -l words (commandline -opc) (commandline -ct)
  $words[1] __complete -- $words[2..-1] 2>/dev/null
end
complete -c aenv -a '(__aenv_candidates)'
`,
};
