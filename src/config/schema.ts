import type { Derived } from './derived.ts'
import type { Values } from './table.ts'

/** The whole configuration: checked values of all settings, and what is derived from them; deep-frozen. */
export type Config = {
  readonly [Name in keyof Values]: Values[Name] & (Name extends keyof Derived ? Derived[Name] : unknown)
} & {
  readonly [Name in Exclude<keyof Derived, keyof Values>]: Derived[Name]
} & {
  /** Absolute paths of the files that secrets were read from, by dotted key; they are followed while a program runs. */
  readonly secretFiles?: Readonly<Record<string, string>>
}
