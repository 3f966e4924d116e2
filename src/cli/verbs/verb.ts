/** An option of a command: its flags, its description, and its default. */
export type Flag = readonly [flags: string, description: string, byDefault?: string]

/** The code of a command: called with the command's arguments, its options and the features; returns the exit code. */
export type Action = (...given: never[]) => number | Promise<number>

/** A command of the command line; without `load` a group of those whose path begins with its own. */
export interface Verb {
  /** Its words after `patchmirror`, such as `webhooks register`; a group comes before what belongs to it. */
  readonly path: string
  /** As commander writes them: `<required>`, `[optional]`, `<several...>`. */
  readonly arguments?: string
  /** One line of the list of commands. */
  readonly summary: string
  readonly options?: readonly Flag[]
  /** What else it does, each by an option of its own. */
  readonly forms?: readonly Form[]
  /** A call of it that its help page shows, without `patchmirror`. A group has none. */
  readonly example?: string
  /** Text below the list of options. */
  readonly after?: string
  /** Loads the code when the command is called, so that --help does not wait for the database or the network. */
  readonly load?: () => Promise<Action>
}

/** What a command does where the first of these options is given; the others go with it alone. */
export interface Form {
  readonly options: readonly Flag[]
  /** It takes the arguments of its command; otherwise none, and its action is called without them. */
  readonly takesArguments?: boolean
  readonly load: () => Promise<Action>
}

/** Reports whether a command does nothing itself: it is a group of others. */
export function isGroup({ load, forms = [] }: Pick<Verb, 'load' | 'forms'>): boolean {
  return load === undefined && forms.length === 0
}

/** Returns every option of a command, with those of its forms; `--csv` and `--json` are the last. */
export function flagsOf({ options = [], forms = [] }: Pick<Verb, 'options' | 'forms'>): readonly Flag[] {
  const given = [...options, ...forms.flatMap((form) => form.options)]
  const all = given.filter(([flags], i) => given.findIndex(([one]) => one === flags) === i)
  const isForm = (flag: Flag): boolean => flag === JSON_FLAG || flag === CSV_FLAG
  return [...all.filter((flag) => !isForm(flag)), ...all.filter(isForm)]
}

/** Prints JSON instead of a text for people. */
export const JSON_FLAG: Flag = ['--json', 'print JSON']
/** Prints the rows of a list for other programs; `--limit` counts as ever. */
export const CSV_FLAG: Flag = ['--csv', 'print CSV']
/** Writes a secret into a file instead of the terminal. */
export const OUT: Flag = ['--out <file>', 'write the secret into this new file, not to the terminal']

/** The group of the lists, which several features fill. */
export const LISTS: VerbPart = { path: 'list', summary: 'what is mirrored, with filters' }

/** The groups of the help page, in their order. */
export const SECTIONS = ['run', 'ask', 'keep', 'move', 'service'] as const

/** Commands by the group that they stand in. */
export type Verbs = Partial<Record<(typeof SECTIONS)[number], readonly VerbPart[]>>

/** A command, or what a part of the program adds to a command of another. */
export type VerbPart = Omit<Verb, 'summary'> & Partial<Pick<Verb, 'summary'>>
