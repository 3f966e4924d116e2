import { Command, CommanderError } from 'commander'
import { VERSION } from '../base/version.ts'
import { nameStorageError } from '../store/database/faults.ts'
import { AFTER, DESCRIPTION } from './manual.ts'
import type { Feature } from '../daemon/feature.ts'
import { verbsOf } from './verbs.ts'
import type { Verb } from './verbs/verb.ts'

export { type Command, CommanderError }

/** The `patchmirror` command line, with the commands of these features. Each action sets the process's exit code. */
export function createProgram(features: readonly Feature[]): Command {
  const program = new Command('patchmirror')
    .description(DESCRIPTION)
    .version(VERSION, '-V, --version', 'print the version; with --json as "version --json" does')
    .option('-c, --config <file>', 'settings file; also PATCHMIRROR_CONFIG')
    .helpOption('-h, --help', 'print this page, or the one of a command')
    .helpCommand('help [command]', 'print the page of a command')
    .addHelpText('after', AFTER)
    .configureHelp({ showGlobalOptions: true })
    .showHelpAfterError('(run "patchmirror --help" for the commands)')
    .exitOverride()
  const parents = new Map([['', program]])
  for (const verb of verbsOf(features)) {
    const words = verb.path.split(' ')
    const name = words.pop() ?? ''
    const parent = parents.get(words.join(' '))
    if (parent === undefined) throw new Error(`the group of "${verb.path}" must be listed before it`)
    parents.set(verb.path, addVerb(parent, name, verb, features))
  }
  return program
}

/** Returns the arguments of a command line; `--version --json` is `version --json`. */
export function argumentsOf(given: readonly string[]): readonly string[] {
  const asksVersion = given.some((one) => one === '-V' || one === '--version')
  const others = given.filter((one) => one !== '-V' && one !== '--version')
  return asksVersion && others.join() === '--json' ? ['version', '--json'] : given
}

/** Adds a command, which never ends the process by itself. */
function addVerb(parent: Command, name: string, verb: Verb, features: readonly Feature[]): Command {
  const { arguments: given = '', summary, options = [], after, example, load } = verb
  const command = parent.command(`${name} ${given}`.trim()).description(summary).showHelpAfterError().exitOverride()
  if (verb.alias !== undefined) command.alias(verb.alias)
  for (const option of options) command.option(...option)
  if (after !== undefined) command.addHelpText('after', after)
  if (example !== undefined) command.addHelpText('after', `\nExample:\n  patchmirror ${example}`)
  if (load === undefined) return command
  return command.action(async () => {
    // Commander parses arguments and options into the types that the action has for them; no type says so.
    const action = (await load()) as (...given: unknown[]) => number | Promise<number>
    const values: unknown[] = command.processedArgs
    try {
      process.exitCode = await action(...values, command.optsWithGlobals(), features)
    } catch (error) {
      throw nameStorageError(error, null)
    }
  })
}

/** The command whose action runs, as a line of usage: `patchmirror runs [options] [run]`. */
export function usageOf(command: Command): string {
  const names: string[] = []
  for (let at: Command | null = command; at !== null; at = at.parent) names.unshift(at.name())
  return `usage: ${names.join(' ')} ${command.usage()}`
}
