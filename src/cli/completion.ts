import { MirrorError } from '../base/errors.ts'
import { print } from './context.ts'
import { type Flag, type Form, flagsOf } from './verbs/verb.ts'

/** Of a command what its completion shows. */
interface Completed {
  readonly path: string
  readonly summary: string
  readonly options?: readonly Flag[]
  readonly forms?: readonly Form[]
}

/** What may follow the words of a command: the words of its own commands, and its options. */
interface Step {
  readonly path: string
  readonly next: readonly (readonly [word: string, summary: string])[]
  readonly flags: readonly string[]
}

/** `patchmirror completion SHELL`: prints the completion script of a shell, made from the table of commands. */
export function printCompletion(shell: string, verbs: readonly Completed[]): number {
  const script = SCRIPTS[shell]
  if (script === undefined)
    throw new MirrorError('usage', `there is no completion for ${shell}: name bash, zsh or fish`)
  print(script(stepsOf(verbs)))
  return 0
}

function stepsOf(verbs: readonly Completed[]): Step[] {
  return ['', ...verbs.map(({ path }) => path)].map((path) => {
    const depth = path === '' ? 1 : path.split(' ').length + 1
    const below = verbs.filter((verb) => {
      const words = verb.path.split(' ')
      return words.length === depth && words.slice(0, -1).join(' ') === path
    })
    const next = below.map((verb) => [verb.path.split(' ').at(-1) ?? '', verb.summary] as const)
    return {
      path,
      next,
      flags: [...wordsOf(verbs.find((verb) => verb.path === path)), '--config', '--help'],
    }
  })
}

function wordsOf(verb: Completed | undefined): string[] {
  return (verb === undefined ? [] : flagsOf(verb)).flatMap(([flags]) => /--[\w-]+/.exec(flags)?.[0] ?? [])
}

const SCRIPTS: Readonly<Partial<Record<string, (steps: readonly Step[]) => string>>> = {
  bash,
  zsh: (all) => `autoload -U +X bashcompinit && bashcompinit\n${bash(all)}`,
  fish,
}

function bash(all: readonly Step[]): string {
  const cases = all.map(({ path, next, flags }) => {
    const words = [...next.map(([word]) => word), ...flags].join(' ')
    return `    '${path}') words='${words}' ;;`
  })
  const paths = all.filter(({ path }) => path !== '').map(({ path }) => `:${path}:`)
  return `# Completion of patchmirror: source this file, or eval "$(patchmirror completion bash)".
_patchmirror() {
  local path='' word words='' at
  local paths='${paths.join('')}'
  for ((at = 1; at < COMP_CWORD; at++)); do
    word="\${path:+$path }\${COMP_WORDS[at]}"
    case "$paths" in *":$word:"*) path="$word" ;; esac
  done
  case "$path" in
${cases.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _patchmirror patchmirror`
}

function fish(all: readonly Step[]): string {
  const quoted = (text: string): string => `'${text.replace(/[\\']/g, '\\$&')}'`
  const lines = all.flatMap(({ path, next, flags }) => {
    const seen = path.split(' ').map((word) => `__fish_seen_subcommand_from ${word}`)
    const at = path === '' ? '__fish_use_subcommand' : seen.join('; and ')
    const own = next.map(([word]) => word).join(' ')
    const before = next.length === 0 || path === '' ? at : `${at}; and not __fish_seen_subcommand_from ${own}`
    const start = `complete -c patchmirror -n '${at}'`
    return [
      ...next.map(([word, summary]) => `complete -c patchmirror -f -n '${before}' -a ${word} -d ${quoted(summary)}`),
      ...flags.map((flag) => `${start} -l ${flag.slice(2)}`),
    ]
  })
  return ['# Completion of patchmirror: patchmirror completion fish | source', ...lines].join('\n')
}
