import { clip } from '../../../base/text.ts'
import type { Tone } from './answer.ts'
import { textOfJson } from '../../../base/json/objects.ts'

/** A value on a page: a text, perhaps with a link. */
export interface Cell {
  readonly text: string
  readonly href?: string
  /** The link leads away from the mirror. */
  readonly outside?: boolean
  readonly look?: 'code' | 'number' | 'time'
  readonly tone?: Tone
  /** Of a time: ISO 8601. */
  readonly instant?: string
  /** A smaller text below. */
  readonly note?: string
  /** What is copied and exported, where the text is a part of it. */
  readonly whole?: string
}

/** Returns a cell of any value of upstream's: cut, and `–` where there is none. */
export function plain(value: unknown, longest?: number): Cell {
  if (value === null || value === undefined || value === '') return { text: '–' }
  return { text: clip(textOfJson(value), longest) }
}

/** Returns a cell of an id, a path or a digest. */
export function code(text: string, href?: string): Cell {
  return { text: clip(text), look: 'code', ...(href !== undefined && { href }) }
}

/** Digits of a digest that tell it from others in sight. */
const SHORT = 12

/** Returns a cell of a digest: its first digits, and all of it to be copied. */
export function digest(text: string): Cell {
  const shown = clip(text)
  const [, algorithm = '', digits = shown] = /^([a-z\d]{1,10}:)?(.*)$/i.exec(shown) ?? []
  if (digits.length <= SHORT) return code(shown)
  return { text: `${algorithm}${digits.slice(0, SHORT)}…`, look: 'code', whole: shown }
}

/** Returns a cell that leads to another page of the mirror. */
export function link(text: string, href: string): Cell {
  return { text: clip(text), href }
}

/** Returns a cell of a number, with separators of thousands. */
export function count(value: number | null | undefined): Cell {
  return value === null || value === undefined ? { text: '–' } : { text: grouped(value), look: 'number' }
}

/** Returns a whole number with thin spaces between groups of three digits. */
export function grouped(value: number): string {
  return Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, '\u202f')
}

/** Returns a cell of a state with its colour. */
export function state(text: string, tone: Tone): Cell {
  return { text, tone }
}

/** Returns a cell of a time (Unix milliseconds or ISO 8601) and how long ago it was. */
export function time(at: number | string | null, now: number): Cell {
  if (at === null) return { text: '–' }
  const date = new Date(at)
  if (Number.isNaN(date.getTime())) return plain(at)
  const instant = date.toISOString()
  const text = `${instant.slice(0, 16).replace('T', ' ')} UTC`
  return { text, look: 'time', instant, note: distanceOf(date.getTime() - now) }
}

/** Returns a text with the times in it as pages show them. */
export function withTimes(text: string): string {
  return text.replace(TIMES, '$1 $2 UTC')
}

const TIMES = /\b(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(?::\d\d(?:\.\d+)?)?Z/g

/** Returns how far a time is from now: `3 h ago`, `in 5 min`. */
function distanceOf(milliseconds: number): string {
  const text = span(Math.abs(milliseconds) / 1000)
  return milliseconds > 0 ? `in ${text}` : `${text} ago`
}

/** Returns a duration in its two largest units: `3 h 12 min`. */
export function span(seconds: number): string {
  if (seconds < 60) return `${Math.max(0, Math.round(seconds))} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} min`
  const hours = Math.floor(minutes / 60)
  if (hours < 48) return withRest(hours, 'h', minutes % 60, 'min')
  const days = Math.floor(hours / 24)
  return withRest(days, 'd', days < MOST_DAYS ? hours % 24 : 0, 'h')
}

/** Days from which the hours beside them do not matter. */
const MOST_DAYS = 14

function withRest(large: number, unit: string, rest: number, restUnit: string): string {
  return rest === 0 ? `${large} ${unit}` : `${large} ${unit} ${rest} ${restUnit}`
}

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB']

/** Returns a cell of a number of bytes, in a unit that people read. */
export function size(value: number | null): Cell {
  if (value === null) return { text: '–' }
  let amount = value
  let unit = 0
  while (amount >= 1000 && unit < UNITS.length - 1) [amount, unit] = [amount / 1000, unit + 1]
  return {
    text: `${unit === 0 ? amount : amount.toPrecision(3)} ${UNITS[unit] ?? ''}`,
    look: 'number',
  }
}

/** Returns a cell of a URL of upstream's: a link where it is http or https, otherwise its text. */
export function outside(url: unknown): Cell {
  const cell = plain(url)
  if (typeof url !== 'string' || url.length > MAX_URL || !/^https?:\/\//i.test(url)) return cell
  try {
    return { ...cell, href: new URL(url).href, outside: true }
  } catch {
    return cell
  }
}

/** Longest URL that becomes a link, characters. */
const MAX_URL = 2048
