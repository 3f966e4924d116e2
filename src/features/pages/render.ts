import { Eta } from 'eta'
import { fileURLToPath } from 'node:url'
import type { Cell } from '../lookup/answers/cells.ts'
import type { Block } from './blocks.ts'
import type { Alternate, WebFeed } from './feed.ts'
import type { Navigation } from './navigation.ts'

/** What the frame of every page shows. */
export interface PageFrame {
  readonly title: string
  readonly blocks: readonly Block[]
  readonly version: string
  readonly style: string
  /** Path of the script; null: the page has none. */
  readonly script: string | null
  /** Seconds after which the script shows the page as it is then; null: it does not. */
  readonly refresh: number | null
  readonly icon: string
  readonly home: string
  readonly search: string
  readonly query: string
  readonly signIn: string | null
  readonly alternates: readonly Alternate[]
  /** The rows of its list as files. */
  readonly downloads: readonly Cell[]
  readonly navigation: Navigation
}

/** Longest text that is shown as one value, characters. */
const MAX_TEXT = 20_000

/** Creates the functions that render pages in HTML and feeds in Atom (RFC 4287). */
export function createRenderer() {
  const eta = new Eta({
    views: fileURLToPath(new URL('./templates', import.meta.url)),
    cache: true,
    autoTrim: ['nl', 'nl'],
    escapeFunction: escapeText,
  })
  return {
    html: (frame: PageFrame): string => eta.render('layout', frame),
    atom: (feed: WebFeed): string => eta.render('atom', feed),
  }
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/**
 * Returns a value as text of HTML, in content and in quoted attributes. Characters that change the direction of text or
 * are invisible are shown by their number, other control characters and lone surrogates as U+FFFD; a text longer than
 * 20,000 characters is cut.
 */
export function escapeText(value: unknown): string {
  const text = typeof value === 'string' ? value : textOf(value)
  if (text.length <= MAX_TEXT && PLAIN.test(text)) return text
  const shown = text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}… (cut: ${text.length} characters)` : text
  return shown
    .toWellFormed()
    .replace(INVISIBLE, (character) => `[U+${hex(character)}]`)
    .replace(CONTROLS, '\ufffd')
    .replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '')
}

/** Text of which nothing is escaped: most is plain, and what follows takes several times as long. */
const PLAIN = /^[ !#-%(-;=?-~]*$/

function textOf(value: unknown): string {
  return value === null || value === undefined ? '' : JSON.stringify(value)
}

/** Scripts whose letters are joined or parted by U+200C and U+200D. */
const JOINED = [
  ...['Arabic', 'Syriac', 'Mongolian', 'Devanagari', 'Bengali', 'Gurmukhi', 'Gujarati', 'Oriya'],
  ...['Tamil', 'Telugu', 'Kannada', 'Malayalam', 'Sinhala', 'Khmer', 'Myanmar'],
].map((script) => `\\p{Script=${script}}`)
/** Where such a character is a part of what is seen: after a letter of these scripts, and in emoji. */
const SEEN = [
  `(?<=[${JOINED.join('')}\\p{Script=Inherited}])[\\u200c\\u200d]`,
  '(?<=\\p{Extended_Pictographic}\\ufe0f?)\\u200d(?=\\p{Extended_Pictographic})',
  '(?<=[\\p{Extended_Pictographic}\\d#*])\\ufe0f',
].join('|')
/**
 * Characters that reorder text or are invisible: of format, such as the soft hyphen and the tag characters; fillers and other
 * blanks that are letters or symbols; and those that end lines.
 */
const INVISIBLE = new RegExp(
  `(?!${SEEN})[\\p{Cf}\\p{Default_Ignorable_Code_Point}\\p{Zl}\\p{Zp}\\u2800\\u{1d159}]`,
  'gu',
)
/** Characters that HTML does not permit. */
const CONTROLS = /(?![\t\n\r])[\p{Cc}\p{Noncharacter_Code_Point}]/gu

function hex(character: string): string {
  return (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')
}
