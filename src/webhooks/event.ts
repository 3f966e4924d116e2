import { matches } from '../patterns.ts'
import type { EventTarget } from '../store/inbox-types.ts'

/** What a verified body says: an event, or why it is none, as one plain line that quotes nothing of it. */
export type ReadEvent =
  { readonly type: string; readonly target: EventTarget | null } | { readonly malformed: string }

const TYPE = /^[\x21-\x7e]{1,256}$/

/**
 * Reads a CloudEvent in JSON (wire facts, webhook deliveries). Of its shape only `type` has to be as expected: an event
 * whose data are of another shape has no target, and is as good a reason to look.
 */
export function readEvent(body: Buffer): ReadEvent {
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(body)
  } catch {
    return { malformed: 'the body is not UTF-8' }
  }
  let event: unknown
  try {
    event = JSON.parse(text)
  } catch {
    return { malformed: 'the body is not JSON' }
  }
  if (!isObject(event)) return { malformed: 'the body is not a JSON object' }
  const { type } = event
  if (type === undefined) return { malformed: 'the event has no type' }
  if (typeof type !== 'string' || !TYPE.test(type))
    return { malformed: 'the type of the event is not one word of visible ASCII' }
  return { type, target: targetOf(event) }
}

/** One component of a repository's name, as registries allow them. */
const PART = '[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*'
const REPOSITORY = new RegExp(`^(?=.{1,255}$)${PART}(?:/${PART})*$`)
const TAG = /^\w[\w.-]{0,127}$/
const DIGEST = /^(?:sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$/
const ARCH = /^(?=.{1,32}$)[a-z0-9]+(?:[/_.-][a-z0-9]+)*$/
/** `<registry>/<repository>:<tag>`, the registry with or without a port, the tag with or without a digest behind it. */
const SUBJECT = new RegExp(
  `^(?=.{1,512}$)(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::\\d{1,5})?/)?${PART}(?:/${PART})*(?::\\w[\\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?$`,
)

/** What is named. One part that does not fit its pattern spoils the whole: half of a hostile name is no better. */
function targetOf(event: Readonly<Record<string, unknown>>): EventTarget | null {
  const data = isObject(event['data']) ? event['data'] : {}
  const repository = part(data['image_repo'], REPOSITORY)
  const tag = part(data['image_tag'], TAG)
  const digest = part(data['image_digest'], DIGEST)
  const arch = part(data['arch'], ARCH)
  const subject = part(event['subject'], SUBJECT)
  if (repository === undefined || repository === null) return null
  if (tag === undefined || digest === undefined || arch === undefined || subject === undefined)
    return null
  return { repository, tag, digest, arch, subject }
}

/** The text when it fits, null when there is none, undefined when it is something else. */
function part(value: unknown, pattern: RegExp): string | null | undefined {
  if (value === undefined || value === null) return null
  return typeof value === 'string' && pattern.test(value) ? value : undefined
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Whether a type is one that asks for a refresh: `*` in a pattern is any characters, `{vendor}` the vendor's word. */
export function createTypeFilter(
  patterns: readonly string[],
  vendor: string,
): (type: string) => boolean {
  const own = patterns.map((pattern) => pattern.replaceAll('{vendor}', vendor))
  return (type) => own.some((pattern) => matches(pattern, type))
}
