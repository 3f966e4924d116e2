import { MirrorError } from '../../base/errors.ts'
import type { Flag, Form, Verb } from './verb.ts'

/** What a command line gives to a command. */
interface Given {
  /** Flags of the options, as the command declares them. */
  readonly flags: readonly string[]
  readonly words: readonly string[]
  /** The words as the arguments that the command declares. */
  readonly values: readonly unknown[]
}

/** The code that a command line calls, and the arguments that it gets before the options. */
interface Chosen {
  readonly action: (...given: unknown[]) => number | Promise<number>
  readonly values: readonly unknown[]
}

/** Loads what a command does with the options that are given. Throws `usage` for those that do not go together. */
export async function actionOf(verb: Verb, { flags, words, values }: Given): Promise<Chosen> {
  const form = formOf(verb, flags)
  const allowed = form === null ? (verb.options ?? []) : form.options
  const stray = flags.find((flag) => !allowed.some(([one]) => one === flag))
  if (stray !== undefined) throw strayOption(verb, stray, form)
  const takesArguments = form === null || form.takesArguments === true
  if (!takesArguments && words.length > 0)
    throw new MirrorError('usage', `${nameOf(form.options[0]?.[0])} takes no argument: ${words.join(' ')}`)
  const load = form === null ? verb.load : form.load
  if (load === undefined) throw new MirrorError('usage', `one of these is needed: ${formNames(verb)}`)
  // Commander parses arguments and options into the types that the action has for them; no type says so.
  const action = (await load()) as Chosen['action']
  return { action, values: takesArguments ? values : [] }
}

/** Returns the form whose option is given; null: none. Throws `usage` for two. */
function formOf({ forms = [] }: Verb, flags: readonly string[]): Form | null {
  const chosen = forms.filter(({ options: [first] }) => first !== undefined && flags.includes(first[0]))
  if (chosen.length > 1)
    throw new MirrorError('usage', `${chosen.map(nameOfForm).join(' and ')} do not go together: give one of them`)
  return chosen[0] ?? null
}

function strayOption({ forms = [] }: Verb, stray: string, form: Form | null): MirrorError {
  if (form !== null) return new MirrorError('usage', `${nameOf(stray)} does not go with ${nameOfForm(form)}`)
  const owners = forms.filter(({ options }) => options.some(([flags]) => flags === stray)).map(nameOfForm)
  return new MirrorError('usage', `${nameOf(stray)} goes with ${owners.join(' or ')} alone`)
}

function formNames({ forms = [] }: Verb): string {
  return forms.map(nameOfForm).join(', ')
}

function nameOfForm({ options: [first] }: Form): string {
  return nameOf(first?.[0])
}

/** Returns the long name in the flags of an option: `--save` of `--save <file>`. */
function nameOf(flags: Flag[0] | undefined): string {
  return /--[\w-]+/.exec(flags ?? '')?.[0] ?? ''
}
