#compdef turnbox
# Completion of turnbox for zsh. In ~/.zshrc, after compinit: source <(turnbox completion zsh)
_turnbox() {
  local -a lines described
  local line value note
  if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then
    compadd -- @VERBS@
    return
  fi
  lines=("${(@f)$("${words[1]}" __complete -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
  for line in "${lines[@]}"; do
    [[ -n $line ]] || continue
    value="${line%%$'\t'*}"
    note="${line#*$'\t'}"
    value="${value//:/\\:}"
    if [[ $line == *$'\t'* ]]; then described+=("$value:$note"); else described+=("$value"); fi
  done
  if (( ${#described} > 0 )); then
    _describe turnbox described
  else
    _files
  fi
}
if [[ $funcstack[1] == _turnbox ]]; then
  _turnbox "$@"
else
  compdef _turnbox turnbox
fi
