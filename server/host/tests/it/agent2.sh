# A scripted agent of version 2 only, in POSIX shell. FOLDER and CAN are as for agent.sh.
echo "$$" >> "$FOLDER/starts"

reply() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
update() { printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"%s","update":%s}}\n' "$sid" "$1"; }
say() { update '{"sessionUpdate":"agent_message_chunk","messageId":"'"$1"'","content":{"type":"text","text":"'"$2"'"}}'; }
idle() { update '{"sessionUpdate":"state_update","state":"idle","stopReason":"'"$1"'","usage":{"inputTokens":7}}'; }
option() { printf '{"configId":"mode","name":"Mode","category":"mode","type":"select","currentValue":"%s","options":[{"value":"ask","name":"Ask"},{"value":"code","name":"Code"}]}' "$1"; }
member() { value=${line#*"\"$1\":\""}; value=${value%%\"*}; }

while IFS= read -r line; do
    echo "$line" >> "$FOLDER/log"
    id=${line#*\"id\":}; id=${id%%[,\}]*}
    case $line in *'"sessionId":"'*) member sessionId; sid=$value ;; esac
    case $line in
    *'"method":"initialize"'*)
        case $line in
        *'"protocolVersion":2'*)
            reply '{"protocolVersion":2,"info":{"name":"second","version":"2"},"capabilities":{"session":{}},"authMethods":[{"type":"agent","methodId":"key","name":"Key"}]}' ;;
        *) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":"unsupported","data":{"requested":1,"supported":[2]}}}\n' "$id" ;;
        esac ;;
    *'"method":"auth/login"'*) reply '{}' ;;
    *'"method":"session/new"'*)
        sid="theirs-$$-$id"
        reply '{"sessionId":"'"$sid"'","configOptions":['"$(option ask)"'],"availableCommands":[{"type":"command","name":"do","description":"Does"}]}' ;;
    *'"method":"session/resume"'*)
        case $line in *'"replayFrom"'*) say old "said before" ;; esac
        reply '{"configOptions":['"$(option ask)"']}' ;;
    *'"method":"session/set_config_option"'*)
        member value; reply '{"configOptions":['"$(option "$value")"']}' ;;
    *'"method":"session/close"'*) reply '{}' ;;
    *'"method":"session/cancel"'*) idle cancelled ;;
    *'"method":"session/prompt"'*)
        reply '{"messageId":"user-'"$id"'"}'
        update '{"sessionUpdate":"user_message","messageId":"user-'"$id"'","content":[{"type":"text","text":"what the user said"}]}'
        update '{"sessionUpdate":"state_update","state":"running"}'
        case $line in
        *'"text":"hello'*)
            say "m-$id" "hel"
            update '{"sessionUpdate":"agent_message","messageId":"m-'"$id"'","content":[{"type":"text","text":"hello"}]}'
            update '{"sessionUpdate":"tool_call_update","toolCallId":"c","title":"Edit","status":"completed"}'
            idle end_turn ;;
        *'"text":"permission'*)
            update '{"sessionUpdate":"state_update","state":"requires_action"}'
            printf '{"jsonrpc":"2.0","id":"p","method":"session/request_permission","params":{"sessionId":"%s","title":"Go on?","options":[{"optionId":"yes","name":"Yes","kind":"allow_once"}]}}\n' "$sid" ;;
        *'"text":"wait'*) say "m-$id" waiting ;;
        *'"text":"die'*) exit 9 ;;
        esac ;;
    *'"id":"p"'*)
        say answer "$(printf '%s' "$line" | sed 's/[\\"]/\\&/g')"
        idle end_turn ;;
    esac
done
