/**
 * The image that an event names (service API, section 6; wire facts, webhook deliveries). All null: the event names
 * none.
 */
export interface EventTarget {
  /** With or without the registry's host. */
  readonly repository: string | null
  readonly tag: string | null
  /** `sha256:…`. */
  readonly digest: string | null
  readonly arch: string | null
  /** The event's subject as received, such as `cr.example.com/library/python:3.12`. */
  readonly subject: string | null
  /** Further targets of the same delivery; they have no `others` themselves. */
  readonly others?: readonly EventTarget[]
}

/** Returns every target that a delivery names, as a flat list. */
export function targetsOf({ others = [], ...first }: EventTarget): EventTarget[] {
  return [first, ...others]
}

/** Returns a text that is equal for targets that name the same thing. */
export function targetKey(target: EventTarget | null): string {
  if (target === null) return ''
  const { repository, tag, digest, arch, subject, others = [] } = target
  return JSON.stringify([repository, tag, digest, arch, subject, ...others.map(targetKey)])
}

/** The names by which a target is looked up: the repository without a host. */
export interface TargetNames {
  readonly repository: string | null
  readonly tag: string | null
  readonly digest: string | null
}

/** Returns a target's names; missing ones are taken from its subject. */
export function namesOf({ repository, tag, digest, subject }: EventTarget): TargetNames {
  const parsed = subject === null ? NOTHING : readReference(subject)
  const name = repository ?? parsed.repository
  return {
    repository: name === null ? null : plainRepository(name),
    tag: tag ?? parsed.tag,
    digest: digest ?? parsed.digest,
  }
}

/** Returns the names in a text. */
export function namesOfText(text: string): TargetNames {
  return namesOf({ repository: null, tag: null, digest: null, arch: null, subject: text })
}

/** Reports whether names identify one thing that can be looked for: a tag or a digest. */
export function isSpecific({ tag, digest }: TargetNames): boolean {
  return tag !== null || digest !== null
}

/** Returns a repository without a registry's host, which contains a dot or a port, or is `localhost`. */
export function plainRepository(name: string): string {
  const slash = name.indexOf('/')
  return slash > 0 && /[.:]|^localhost$/.test(name.slice(0, slash)) ? name.slice(slash + 1) : name
}

const MAX_DEPTH = 6
const MAX_TEXT = 500

/** Returns every short text of an item, at any depth up to the limit: upstream's field names vary. */
export function textsWithin(item: unknown): string[] {
  const found: string[] = []
  const collect = (value: unknown, depth: number): void => {
    if (typeof value === 'string') {
      if (value !== '' && value.length <= MAX_TEXT) found.push(value)
    } else if (typeof value === 'object' && value !== null && depth < MAX_DEPTH)
      for (const inner of Object.values(value)) collect(inner, depth + 1)
  }
  collect(item, 0)
  return found
}

/** Returns the texts by which an item can be looked up: each text, and the tag and the digest of each reference. */
export function lookupTexts(texts: readonly string[]): Set<string> {
  const words = new Set(texts)
  for (const { tag, digest } of texts.map(readReference)) {
    if (tag !== null) words.add(tag)
    if (digest !== null) words.add(digest)
  }
  return words
}

/**
 * Reports whether an item with these texts is the named one: the tag and the repository must occur, each as a text of
 * its own or as part of a reference. Without a tag the digest decides. False when neither is given.
 */
export function isNamed(texts: readonly string[], { repository, tag, digest }: TargetNames): boolean {
  if (tag === null) return digest !== null && hasDigest(texts, digest)
  const references = texts.map(readReference)
  if (!texts.includes(tag) && !references.some((one) => one.tag === tag)) return false
  if (repository === null) return true
  return references.some(
    (one, at) =>
      one.repository !== null && [plainRepository(one.repository), one.repository, texts[at]].includes(repository),
  )
}

/** Reports whether a digest is among the texts, alone or after the `@` of a reference. */
export function hasDigest(texts: readonly string[], digest: string): boolean {
  return texts.some((text) => text === digest || text.endsWith(`@${digest}`))
}

const NOTHING: TargetNames = { repository: null, tag: null, digest: null }

/** Parses `host/repository:tag@digest`; every part except the repository is optional. */
function readReference(text: string): TargetNames {
  if (text.length > MAX_TEXT) return NOTHING
  const match = /^([^\s@]*?[^\s@:/])(?::([\w.-]{1,128}))?(?:@(\w+:[0-9a-f]+))?$/.exec(text)
  if (match === null) return NOTHING
  return { repository: match[1] ?? null, tag: match[2] ?? null, digest: match[3] ?? null }
}
