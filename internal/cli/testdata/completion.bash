_test() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=do flags=
    if [[ $word == = ]]; then
        word=
    elif [[ $before == = ]]; then
        before=${COMP_WORDS[COMP_CWORD-2]}
    fi
    case ${COMP_WORDS[1]} in
        do|completion|man) ((COMP_CWORD > 1)) && command=${COMP_WORDS[1]} ;;
    esac
    case "$command $before" in
        "do --fail") COMPREPLY=(); return ;;
        "do --mode"|"do -m") COMPREPLY=($(compgen -W "fast slow" -- "$word")); return ;;
        "completion completion") COMPREPLY=($(compgen -W "bash zsh fish" -- "$word")); return ;;
    esac
    case $command in
        do) flags="--help -h --version --fail --mode -m --into -o --quiet" ;;
    esac
    if [[ $word == -* ]]; then
        COMPREPLY=($(compgen -W "$flags" -- "$word"))
        return
    fi
    COMPREPLY=()
    ((COMP_CWORD > 1)) || COMPREPLY=($(compgen -W "do completion man" -- "$word"))
    local IFS=$'\n'
    COMPREPLY+=($(compgen -f -- "$word"))
}
complete -o filenames -F _test test
