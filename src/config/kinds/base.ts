import { resolve } from 'node:path'

/** What a check may need from outside: the folder relative paths count from, and the cron parser. */
export interface CheckContext {
  readonly cwd: string
  readonly validateCron: (expression: string) => boolean
}

/** A checked value, or what is wrong with it: a phrase that follows the value, and never repeats it. */
export type Parsed<T> = { readonly value: T } | { readonly fault: string }

/** A part of a JSON Schema. */
type Shape = Readonly<Record<string, unknown>>

/** One setting: what it accepts and its description. `check` takes YAML's value and returns the program's. */
export interface Setting<T> {
  readonly allowed: string
  readonly example: string
  readonly secret: boolean
  /** What a file of settings may have here, in JSON Schema; `check` may refuse more. */
  readonly shape: Shape
  readonly check: (raw: unknown, context: CheckContext) => Parsed<T>
  /** Converts an environment variable's text into the value that YAML would give. */
  readonly fromText: (text: string) => unknown
  /** Joins the values of two layers, the earlier first; without it the later one replaces the earlier. */
  merge?(earlier: T, later: T): T
}

/** The type a setting's checked value has. */
export type ValueOf<S> = S extends Setting<infer T> ? T : never

interface Range {
  readonly min: number
  readonly max: number
  readonly example: number
}

const asIs = (text: string): unknown => text

/** Text that reads as a decimal number becomes one; anything else stays text, for the check to refuse. */
export function numberFromText(text: string): unknown {
  const trimmed = text.trim()
  return /^[+-]?\d+(\.\d+)?$/.test(trimmed) ? Number(trimmed) : text
}

/** What is wrong with a number, or null. */
export function rangeFault(value: number, min: number, max: number): string | null {
  if (value < min) return 'is too small'
  return value > max ? 'is too large' : null
}

/** A number within a range, fractions allowed. */
export function number({ min, max, example }: Range): Setting<number> {
  const check = (raw: unknown): Parsed<number> => {
    if (typeof raw === 'string' && typeof numberFromText(raw) === 'number')
      return { fault: 'is text, not a number: write it without quotes' }
    if (typeof raw !== 'number' || !Number.isFinite(raw)) return { fault: 'is not a number' }
    const fault = rangeFault(raw, min, max)
    return fault === null ? { value: raw } : { fault }
  }
  const allowed = `a number from ${min} to ${max}`
  const shape = { type: 'number', minimum: min, maximum: max }
  const shown = String(example)
  const fromText = numberFromText
  return { allowed, example: shown, secret: false, shape, check, fromText }
}

/** A whole number within a range. */
export function integerSetting(range: Range): Setting<number> {
  const base = number(range)
  const check = (raw: unknown, context: CheckContext): Parsed<number> =>
    typeof raw === 'number' && Number.isFinite(raw) && !Number.isInteger(raw)
      ? { fault: 'is not a whole number' }
      : base.check(raw, context)
  const allowed = `a whole number from ${range.min} to ${range.max}`
  return { ...base, allowed, shape: { ...base.shape, type: 'integer' }, check }
}

const WORDS = new Map([
  ['true', true],
  ['false', false],
])

/** A switch: `true` or `false`, nothing else. */
export function flag(example: boolean): Setting<boolean> {
  return {
    allowed: 'true or false',
    example: String(example),
    secret: false,
    shape: { type: 'boolean' },
    check: (raw) => (typeof raw === 'boolean' ? { value: raw } : { fault: 'is not true or false' }),
    fromText: (value) => WORDS.get(value.trim().toLowerCase()) ?? value,
  }
}

/** One of a few words. */
export function choice<const T extends string>(words: readonly T[], example: T): Setting<T> {
  const check = (raw: unknown): Parsed<T> => {
    const word = words.find((candidate) => candidate === raw)
    return word === undefined ? { fault: 'is not one of the words allowed' } : { value: word }
  }
  const allowed = words.join(', ')
  const shape = { enum: [...words] }
  return { allowed, example, secret: false, shape, check, fromText: (t) => t.trim() }
}

/** Text that `parse` accepts, changes or refuses. Empty text is always refused. */
export function textSetting(
  allowed: string,
  example: string,
  parse: (value: string, context: CheckContext) => Parsed<string>,
): Setting<string> {
  const check = (raw: unknown, context: CheckContext): Parsed<string> => {
    if (typeof raw !== 'string') return { fault: 'is not text' }
    return raw.trim() === '' ? { fault: 'is empty' } : parse(raw, context)
  }
  const shape = { type: 'string', minLength: 1 }
  return { allowed, example, secret: false, shape, check, fromText: asIs }
}

/** Returns a path of a file or a folder, made absolute. Only a shell knows what ~ stands for: here it would be a folder of that name. */
export function absolutePath(path: string, { cwd }: CheckContext): Parsed<string> {
  if (path.includes('\0')) return { fault: 'contains a NUL character' }
  return path === '~' || path.startsWith('~/')
    ? { fault: 'has ~ in place of a home folder, which only a shell replaces: write the whole path' }
    : { value: resolve(cwd, path) }
}

/** A list of text values; in an environment variable or a file they are separated by commas or line ends. */
export function list(item: Setting<string>): Setting<readonly string[]> {
  const check = (raw: unknown, context: CheckContext): Parsed<readonly string[]> => {
    if (!Array.isArray(raw)) return { fault: 'is not a list' }
    const values: string[] = []
    for (const [index, entry] of raw.entries()) {
      const result = item.check(entry, context)
      if ('fault' in result) return { fault: `(entry ${index + 1}) ${result.fault}` }
      if (values.includes(result.value)) return { fault: `(entry ${index + 1}) is there twice` }
      values.push(result.value)
    }
    return { value: values }
  }
  const fromText = (value: string): unknown =>
    value.split(/[,\r\n]/).flatMap((entry) => (entry.trim() === '' ? [] : [entry.trim()]))
  const allowed = `a list of ${item.allowed}`
  const shape = { type: 'array', items: item.shape, uniqueItems: true }
  return { allowed, example: `[${item.example}]`, secret: false, shape, check, fromText }
}

/** The same setting, which may also be `null`: not set. */
export function nullable<T>(setting: Setting<T>): Setting<T | null> {
  return {
    ...setting,
    allowed: `${setting.allowed}, or null`,
    shape: { anyOf: [setting.shape, { type: 'null' }] },
    check: (raw, context) => (raw === null ? { value: null } : setting.check(raw, context)),
  }
}

/** The same setting, kept out of every message and listing; it may also come from a file of its own. */
export function secret<T>(setting: Setting<T>): Setting<T> {
  return { ...setting, secret: true }
}
