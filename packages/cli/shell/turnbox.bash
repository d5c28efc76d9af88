# Completion of turnbox for bash. In ~/.bashrc: source <(turnbox completion bash)
# Works with bash 3.2. Bash breaks words at colons and equal signs: they are put together for the question, and what is
# before the last of them is taken off the answers.
_turnbox() {
  local -a typed
  local index count=0 glue="" word line quoted before
  typed=()
  for ((index = 1; index <= COMP_CWORD; index++)); do
    word="${COMP_WORDS[index]}"
    if [[ $count -gt 0 && ( -n $glue || $word == [:=]* ) ]]; then
      typed[count - 1]="${typed[count - 1]}$word"
      glue=""
      if [[ $word == *[:=] ]]; then glue=yes; fi
    else
      typed[count]="$word"
      count=$((count + 1))
    fi
  done
  word="${typed[count - 1]}"
  COMPREPLY=()
  if [[ $count -eq 1 && $word != -* ]]; then
    COMPREPLY=($(compgen -W "@VERBS@" -- "$word"))
    return 0
  fi
  before="${word%"${word##*[:=]}"}"
  while IFS= read -r line; do
    line="${line%%$'\t'*}"
    printf -v quoted '%q' "${line#"$before"}"
    COMPREPLY+=("$quoted")
    if [[ $line == *: ]]; then compopt -o nospace 2>/dev/null; fi
  done < <("$1" __complete -- "${typed[@]}" 2>/dev/null)
  return 0
}
complete -o default -F _turnbox turnbox
