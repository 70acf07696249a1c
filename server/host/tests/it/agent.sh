# A scripted agent with faults, in POSIX shell. What it does is in its environment and in prompts:
#   FOLDER    where it notes its starts (`starts`, a process id a line) and what it receives (`log`)
#   CAN       `resume`, `load`, `fork`, `delete` or nothing
#   MODES     whether its sessions have modes and options
#   STEERS    `own` or `common`: the method by which it takes input during turns; or nothing
#   UNDOES    whether it restores files
#   AT_START  `die`, `silent`, `flood` or nothing: what it does instead of answering initialize
#   HOLD      a method whose requests it does not answer
#   LOGIN     a URL: a login prints it, and ends when the file `code` exists; `form`: it asks for a key
#   CHILD     whether it starts a process that leaves its group (`children`, a process id a line)
echo "$$" >> "$FOLDER/starts"
: >> "$FOLDER/mode"

reply() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
refuse() { printf '{"jsonrpc":"2.0","id":%s,"error":%s}\n' "$id" "$1"; }
update() { printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"%s","update":%s}}\n' "$sid" "$1"; }
say() { update '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'"$1"'"}}'; }
member() { value=${line#*"\"$1\":\""}; value=${value%%\"*}; }
choice() { printf '{"id":"model","name":"Model","type":"select","currentValue":"%s","options":[{"value":"small","name":"S"},{"value":"large","name":"L"}]}' "$1"; }
settings() {
    [ -n "$MODES" ] || return
    model=$(cat "$FOLDER/mode"); [ "$1" = keep ] && [ -n "$model" ] || model=small
    printf ',"modes":{"currentModeId":"ask","availableModes":[{"id":"ask","name":"Ask"},{"id":"code","name":"Code"}]},"configOptions":[%s]' "$(choice "$model")"
}

leave() {
    setsid sh -c "$1"'; echo $$ >> "$FOLDER/children"; sleep 1000; echo "$large"' </dev/null >/dev/null 2>&1 &
}
if [ -n "$CHILD" ]; then
    leave :
    until grep -q . "$FOLDER/children" 2>/dev/null; do sleep 0.01; done
fi
case $AT_START in
die) echo "first line" >&2; echo "no luck today" >&2; exit 3 ;;
silent) while IFS= read -r line; do :; done; exit 0 ;;
flood) while :; do echo "this is no message"; done ;;
esac

while IFS= read -r line; do
    echo "$line" >> "$FOLDER/log"
    id=${line#*\"id\":}; id=${id%%[,\}]*}
    case $line in *'"sessionId":"'*) member sessionId; sid=$value ;; esac
    case $line in
    *"\"method\":\"${HOLD:-none}\""*) ;;
    *'"method":"initialize"'*)
        can=
        own=; common=; ours=
        case $STEERS in
        own) ours='"steer":true' ;;
        common) common='"_meta":{"steering":{"supported":true}},' ;;
        esac
        [ -n "$UNDOES" ] && ours="$ours${ours:+,}"'"undo":true'
        [ -n "$ours" ] && own=',"acp-sdk":{"session":{'"$ours"'}}'
        for one in resume fork delete; do
            case $CAN in *$one*) can="$can,\"$one\":{}" ;; esac
        done
        can="\"sessionCapabilities\":{${can#,}},"
        case $CAN in *load*) can="$can"'"loadSession":true,' ;; esac
        reply '{"protocolVersion":'"${VERSION:-1}"',"agentCapabilities":{'"$can"'"promptCapabilities":{"image":true},"_meta":{"scripted":true'"$own"'}},'"$common"'"authMethods":[{"id":"key","name":"Key"}],"agentInfo":{"name":"scripted","version":"7"}}'
        ;;
    *'"method":"authenticate"'*)
        case $LOGIN in
        form)
            prompt=$id
            printf '{"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"mode":"form","requestId":%s,"message":"Key?","requestedSchema":{"type":"object","properties":{"key":{"type":"string"}}}}}\n' "$id"
            continue ;;
        http*)
            echo "To log in, open $LOGIN." >&2
            until [ -e "$FOLDER/code" ]; do sleep 0.01; done ;;
        esac
        reply '{}' ;;
    *'"id":"e"'*)
        id=$prompt; prompt=
        case $line in
        *'"key":"k-1"'*) reply '{}' ;;
        *) refuse '{"code":-32000,"message":"no key"}' ;;
        esac ;;
    *'"method":"session/new"'*)
        sid="theirs-$$-$id"
        say "before the answer"
        reply '{"sessionId":"'"$sid"'"'"$(settings)"'}'
        update '{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"do","description":"Does"}]}'
        ;;
    *'"method":"session/fork"'*)
        [ -n "$NO_FORK" ] && refuse '{"code":-32002,"message":"its file is gone"}' && continue
        sid="fork-$$-$id"; say "of the fork"; reply '{"sessionId":"'"$sid"'"'"$(settings)"'}' ;;
    *'"method":"session/delete"'*) reply '{}' ;;
    *'"method":"session/resume"'*) reply '{"a":1'"$(settings)"'}' ;;
    *'"method":"session/load"'*)
        say "replayed"
        update '{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"do","description":"Does"}]}'
        reply '{"a":1'"$(settings)"'}'
        ;;
    *'"method":"session/set_config_option"'*)
        member value; echo "$value" > "$FOLDER/mode"
        reply '{"configOptions":['"$(choice "$value")"',{"id":"effort","name":"Effort","type":"select","currentValue":"low","options":[{"value":"low","name":"Low"}]}]}'
        ;;
    *'"method":"session/set_mode"'*) reply '{}' ;;
    *'"method":"session/cancel"'*)
        [ -n "$prompt" ] && id=$prompt && prompt= && reply '{"stopReason":"cancelled"}' ;;
    *'"method":"_acp-sdk/session/steer"'*|*'"method":"_session/steering"'*)
        case $line in
        *'"text":"no'*) reply '{"outcome":"promptRequired","reason":"noRunningTurn"}' ;;
        *'"text":"fail'*) refuse '{"code":-32603,"message":"no room"}' ;;
        *'"text":"end'*)
            reply '{"outcome":"injected"}'; say "steered"
            id=$prompt; prompt=; reply '{"stopReason":"end_turn"}' ;;
        *) say "before"; reply '{"outcome":"injected"}'; say "after" ;;
        esac
        ;;
    *'"method":"_acp-sdk/session/undo"'*)
        case $line in
        *'"force":true'*) reply '{"turn":"t","applied":true,"files":[{"path":"/w/a","outcome":"restored"}],"undoable":0,"redoable":1}' ;;
        *) refuse '{"code":-32600,"message":"a turn is running"}' ;;
        esac ;;
    *'"method":"_acp-sdk/session/redo"'*) reply '{"applied":"perhaps"}' ;;
    *'"method":"_theirs/echo"'*) reply "{\"session\":\"$sid\",\"n\":1.50}" ;;
    *'"method":"_theirs/refuse"'*) refuse '{"code":-31999,"message":"never","data":{"n":1.50}}' ;;
    *'"method":"_theirs/later"'*) sid=$(cat "$FOLDER/sid"); say "on its own" ;;
    *'"method":"session/prompt"'*)
        echo "$sid" > "$FOLDER/sid"
        case $line in
        *'"text":"hello'*) say hi; reply '{"stopReason":"end_turn","usage":{"tokens":1.50},"_meta":{"t":1}}' ;;
        *'"text":"all'*)
            printf '{"jsonrpc":"2.0","method":"session/update","params":{"_meta":{"trace":"x"},"sessionId":"%s","update":{"more":[1.50],"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"one","later":1},"_meta":{"m":1}}}}\n' "$sid"
            update '{"n":1e2,"sessionUpdate":"of_tomorrow"}'
            update '{"sessionUpdate":"tool_call"}'
            reply '{"stopReason":"of_tomorrow"}'
            ;;
        *'"text":"repeat'*)
            update '{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"repeat"}}'
            update '{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"repeat"}}'
            reply '{"stopReason":"end_turn"}' ;;
        *'"text":"interrupted'*)
            say one
            update '{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"more","description":"Does more"}]}'
            update '{"sessionUpdate":"usage_update","used":1,"size":2}'
            say two
            update '{"sessionUpdate":"tool_call","toolCallId":"c","title":"Look"}'
            say three
            reply '{"stopReason":"end_turn"}' ;;
        *'"text":"die'*)
            update '{"sessionUpdate":"tool_call","toolCallId":"c","title":"Long"}'
            echo "the disk is full" >&2; exit 9 ;;
        *'"text":"garbage'*) while :; do echo 'no "message'; done ;;
        *'"text":"huge'*) head -c 300000 /dev/zero | tr '\0' x; echo ;;
        *'"text":"wait'*) prompt=$id; say waiting ;;
        *'"text":"grow'*) prompt=$id; leave 'large=$(head -c 30000000 /dev/zero | tr "\0" x)' ;;
        *'"text":"stubborn'*) say stubborn ;;
        *'"text":"stderr'*)
            n=0; while [ $n -lt 3000 ]; do echo "line $n of many, which nobody reads at all" >&2; n=$((n+1)); done
            say done; reply '{"stopReason":"end_turn"}' ;;
        *'"text":"refuse'*) refuse '{"code":-31000,"message":"not today","data":{"n":1.50}}' ;;
        *'"text":"odd'*) reply '{}' ;;
        *'"text":"permission'*)
            prompt=$id
            update '{"sessionUpdate":"tool_call","toolCallId":"c","title":"Edit"}'
            printf '{"jsonrpc":"2.0","id":"p","method":"session/request_permission","params":{"sessionId":"%s","toolCall":{"toolCallId":"c","_meta":{"a":1}},"options":[{"optionId":"yes","name":"Yes","kind":"allow_once"}],"_meta":{"q":1}}}\n' "$sid"
            ;;
        *'"text":"read'*)
            prompt=$id
            printf '{"jsonrpc":"2.0","id":"f","method":"fs/read_text_file","params":{"sessionId":"%s","path":"/w/a","more":1.50}}\n' "$sid"
            ;;
        *'"text":"terminal'*)
            prompt=$id
            printf '{"jsonrpc":"2.0","id":"x","method":"terminal/create","params":{"sessionId":"%s","command":"serve"}}\n' "$sid"
            ;;
        *'"text":"ask'*)
            prompt=$id
            printf '{"jsonrpc":"2.0","id":"x","method":"_theirs/question","params":{"sessionId":"%s","n":1.50}}\n' "$sid"
            ;;
        *'"text":"env'*) say "${ACP_SERVER_TOKEN:-none} $$"; reply '{"stopReason":"end_turn"}' ;;
        *) reply '{"stopReason":"end_turn"}' ;;
        esac
        ;;
    *'"id":"p"'*|*'"id":"f"'*|*'"id":"x"'*)
        # The answer of a client, as text of a message.
        said=$(printf '%s' "$line" | sed 's/[\\"]/\\&/g')
        say "$said"
        id=$prompt; prompt=
        [ -n "$id" ] && reply '{"stopReason":"end_turn"}'
        ;;
    *'"method":"'*)
        case $line in *'"id":'*) refuse '{"code":-32601,"message":"unknown"}' ;; esac ;;
    esac
done
