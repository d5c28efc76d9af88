# Completion of turnbox for fish. In ~/.config/fish/config.fish: turnbox completion fish | source
function __turnbox_candidates
    set -l typed (commandline -opc)
    set -l current (commandline -ct)
    set -e typed[1]
    if test (count $typed) -eq 0; and not string match -q -- '-*' "$current"
        printf '%s\n' @VERBS@
    else
        turnbox __complete -- $typed "$current" 2>/dev/null
    end
end
complete -c turnbox -n 'not __fish_seen_subcommand_from cp template' -f
complete -c turnbox -a '(__turnbox_candidates)'
