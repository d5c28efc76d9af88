export type Shell = "bash" | "zsh" | "fish";

/** A script that completes the words of `turnbox`, given the verbs, which it knows without asking. */
export const COMPLETION_SCRIPTS: Readonly<Record<Shell, (verbs: readonly string[]) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

/**
 * Works with bash 3.2. Bash breaks words at colons and equal signs: they are put together for the question, and what stands
 * before the last of them is taken off the answers.
 */
function bashScript(verbs: readonly string[]): string {
  return `# Completion of turnbox for bash. In ~/.bashrc: source <(turnbox completion bash)
_turnbox() {
  local -a typed
  local index count=0 glue="" word line quoted before
  typed=()
  for ((index = 1; index <= COMP_CWORD; index++)); do
    word="\${COMP_WORDS[index]}"
    if [[ $count -gt 0 && ( -n $glue || $word == [:=]* ) ]]; then
      typed[count - 1]="\${typed[count - 1]}$word"
      glue=""
      if [[ $word == *[:=] ]]; then glue=yes; fi
    else
      typed[count]="$word"
      count=$((count + 1))
    fi
  done
  word="\${typed[count - 1]}"
  COMPREPLY=()
  if [[ $count -eq 1 && $word != -* ]]; then
    COMPREPLY=($(compgen -W "${verbs.join(" ")}" -- "$word"))
    return 0
  fi
  before="\${word%"\${word##*[:=]}"}"
  while IFS= read -r line; do
    line="\${line%%$'\\t'*}"
    printf -v quoted '%q' "\${line#"$before"}"
    COMPREPLY+=("$quoted")
    if [[ $line == *: ]]; then compopt -o nospace 2>/dev/null; fi
  done < <("$1" __complete -- "\${typed[@]}" 2>/dev/null)
  return 0
}
complete -o default -F _turnbox turnbox
`;
}

function zshScript(verbs: readonly string[]): string {
  return `#compdef turnbox
# Completion of turnbox for zsh. In ~/.zshrc, after compinit: source <(turnbox completion zsh)
_turnbox() {
  local -a lines described
  local line value note
  if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then
    compadd -- ${verbs.join(" ")}
    return
  fi
  lines=("\${(@f)$("\${words[1]}" __complete -- "\${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
  for line in "\${lines[@]}"; do
    [[ -n $line ]] || continue
    value="\${line%%$'\\t'*}"
    note="\${line#*$'\\t'}"
    value="\${value//:/\\\\:}"
    if [[ $line == *$'\\t'* ]]; then described+=("$value:$note"); else described+=("$value"); fi
  done
  if (( \${#described} > 0 )); then
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
`;
}

function fishScript(verbs: readonly string[]): string {
  return `# Completion of turnbox for fish. In ~/.config/fish/config.fish: turnbox completion fish | source
function __turnbox_candidates
    set -l typed (commandline -opc)
    set -l current (commandline -ct)
    set -e typed[1]
    if test (count $typed) -eq 0; and not string match -q -- '-*' "$current"
        printf '%s\\n' ${verbs.join(" ")}
    else
        turnbox __complete -- $typed "$current" 2>/dev/null
    end
end
complete -c turnbox -n 'not __fish_seen_subcommand_from cp template' -f
complete -c turnbox -a '(__turnbox_candidates)'
`;
}
