# fish completion for reconcile
function __reconcile_complete
    for line in (COMP_WORDS=(commandline -cp | string collect) _RECONCILE_COMPLETE=fish_complete reconcile 2>/dev/null)
        switch $line
            case ':file'
                __fish_complete_path (commandline -ct)
            case ':dir'
                __fish_complete_directories (commandline -ct)
            case '*'
                printf '%s\n' $line
        end
    end
end
complete -c reconcile -f -k -a '(__reconcile_complete)'
