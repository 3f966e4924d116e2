import { Command, CommanderError, Help, type Option } from 'commander'
import { VERSION } from '../base/version.ts'
import { nearest } from '../config/nearest.ts'
import { nameStorageError } from '../store/database/faults.ts'
import type { Feature } from '../daemon/feature.ts'
import { AFTER, DESCRIPTION } from './manual.ts'
import { sectionsOf } from './verbs.ts'
import { actionOf } from './verbs/forms.ts'
import { successorOf } from './verbs/synonyms.ts'
import { type Verb, flagsOf, isGroup } from './verbs/verb.ts'

export { type Command, CommanderError }

/** The `patchmirror` command line, with the commands of these features. Each action sets the process's exit code. */
export function createProgram(features: readonly Feature[]): Command {
  const program = new Command('patchmirror')
    .description(DESCRIPTION)
    .usage('[options] COMMAND')
    .version(VERSION, '-V, --version', 'print the version; with --json also the formats of database and bundles')
    .option('-c, --config <file>', 'settings file; also PATCHMIRROR_CONFIG')
    .helpOption('-h, --help', 'print this page, or the one of a command')
    .addHelpText('after', AFTER)
    .configureHelp({ showGlobalOptions: true, visibleOptions, subcommandTerm, subcommandDescription })
    .exitOverride()
  speakOneVoice(program.helpCommand(false))
  const parents = new Map([['', program]])
  for (const { section, verbs } of sectionsOf(features))
    for (const verb of verbs) {
      const words = verb.path.split(' ')
      const name = words.pop() ?? ''
      const parent = parents.get(words.join(' '))
      if (parent === undefined) throw new Error(`the group of "${verb.path}" must be listed before it`)
      const command = addVerb(parent, name, verb, features)
      if (parent === program) command.helpGroup(`${section.charAt(0).toUpperCase()}${section.slice(1)}:`)
      parents.set(verb.path, command)
    }
  addHelp(program)
  return program
}

/** Adds the command that prints the page of a command at any depth, and refuses what is none. */
function addHelp(program: Command): void {
  const help = program.command('help').argument('[command...]').description('print the page of a command')
  speakOneVoice(help)
  help.helpGroup('Service:').action((words: readonly string[]) => {
    let command = program
    for (const word of words) {
      if (command.commands.length === 0) break // it is an argument
      const next = command.commands.find((one) => one.name() === word)
      if (next === undefined) return refuseCommand(command, word)
      command = next
    }
    command.help()
  })
}

/** Throws for a word that is no command of a group, and names the one that it most likely means. */
function refuseCommand(group: Command, word: string): never {
  const names = group.commands.map((one) => one.name())
  const meant = nearest(word, names)
  group.args = [word] // as if it had been called
  return group.error(`unknown command '${word}'${meant === null ? '' : ` (Did you mean ${meant}?)`}`)
}

/** Reports whether a command line asks for the version as JSON. */
export function asksVersionAsJson(given: readonly string[]): boolean {
  const others = given.filter((one) => one !== '-V' && one !== '--version')
  return others.length < given.length && others.join() === '--json'
}

/** Returns the options that a page lists: those of every command are in the text of the first page. */
function visibleOptions(command: Command): Option[] {
  return command.parent === null ? [] : new Help().visibleOptions(command)
}

/** Returns what the list of commands has of one: on the first page its name alone. */
function subcommandTerm(command: Command): string {
  const isFirstPage = command.parent?.parent === null
  return isFirstPage ? command.name() : `${command.name()} ${command.usage()}`
}

/** Returns the summary of a command, of a group also the names of its commands. */
function subcommandDescription(command: Command): string {
  const below = command.commands.map((one) => one.name()).join(' ')
  return below === '' ? command.description() : `${command.description()}: ${below}`
}

/** Adds a command, which never ends the process by itself. */
function addVerb(parent: Command, name: string, verb: Verb, features: readonly Feature[]): Command {
  const { arguments: given = '', summary, after, example } = verb
  const command = parent.command(`${name} ${given}`.trim()).description(summary).helpCommand(false).exitOverride()
  speakOneVoice(command)
  for (const option of flagsOf(verb)) command.option(...option)
  if (after !== undefined) command.addHelpText('after', after.trimEnd())
  if (example !== undefined) command.addHelpText('after', `\nExample:\n  patchmirror ${example}`)
  if (isGroup(verb)) return command
  return command.action(async () => {
    const given = command.options.filter((option) => command.getOptionValueSource(option.attributeName()) === 'cli')
    refuseEmpty(command, given)
    const flags = given.map((option) => option.flags)
    const { action, values } = await actionOf(verb, { flags, words: command.args, values: command.processedArgs })
    try {
      process.exitCode = await action(...values, command.optsWithGlobals(), features)
    } catch (error) {
      throw nameStorageError(error, null)
    }
  })
}

/** Refuses an argument or option without a character: a filter of an unset variable would find nothing, and say so. */
function refuseEmpty(command: Command, given: readonly Option[]): void {
  const isEmpty = (value: unknown): boolean => value === '' || (Array.isArray(value) && value.includes(''))
  const option = given.find((one) => isEmpty(command.getOptionValue(one.attributeName())))
  if (option === undefined && !isEmpty(command.args)) return
  const what = option === undefined ? 'an argument' : `option '${option.flags}'`
  command.error(`${what} is empty: leave it out, or give it a value (is a variable of the shell not set?)`)
}

/** Has a command print what is wrong with a command line as the program prints all else that is wrong, with its usage. */
function speakOneVoice(command: Command): void {
  command.configureOutput({
    outputError: (text, write) => {
      const words = [...namesOf(command), command.args[0] ?? '']
      const successor = successorOf(words)
      const found = text
        .replace(/^error: /, '')
        .replace(/\n(?=.)/g, ' ')
        .trim()
      const message =
        successor === null ? found : `there is no command "${words.join(' ')}": it is "patchmirror ${successor}"`
      write(`patchmirror: ${message}\n${usageOf(command)}\n`)
    },
  })
}

/** The words after `patchmirror` that call a command. */
function namesOf(command: Command): string[] {
  return command.parent === null ? [] : [...namesOf(command.parent), command.name()]
}

/** The command whose action runs, as a line of usage: `patchmirror runs [options] [run]`. */
export function usageOf(command: Command): string {
  return `usage: ${['patchmirror', ...namesOf(command), command.usage()].join(' ')}`
}
