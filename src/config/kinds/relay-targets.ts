import { type Parsed, type Setting, textSetting } from './base.ts'
import { parseReceiver } from './urls.ts'

/** What stands before the URL of a target that takes lines for people. */
const CHAT = 'chat+'
/** A name before a URL. It begins with a letter, so that it is neither the number of a target nor empty. */
const NAMED = /^([A-Za-z][\w-]{0,63})=(.*)$/s
/** Something else before a URL. */
const OTHER_NAME = /^[^=:/]*=/

/** A target of the relay, as the settings have it. */
export interface NamedTarget {
  /** Chosen by the operator, and shown to everybody; null: it has none. */
  readonly name: string | null
  /** May contain a token: never shown. */
  readonly url: string
  /** Signed events, or lines for people of a team workspace. */
  readonly kind: 'standard' | 'chat'
}

/** A URL that events are passed on to, with or without NAME= before it; chat+ marks an incoming webhook of a team workspace. */
export function relayTarget(): Setting<string> {
  const allowed =
    'NAME=URL, or the URL alone: http or https without user name, password or fragment, with chat+ before those of team workspaces'
  return textSetting(allowed, 'ci=https://ci.example.com/hooks/patchmirror', (value): Parsed<string> => {
    const text = value.trim()
    const { name, url } = partsOf(text)
    if (name === null && OTHER_NAME.test(text))
      return { fault: `has a name that is not a letter and up to 63 letters, digits, "_" and "-"` }
    const parsed = parseReceiver(url)
    return 'fault' in parsed ? parsed : { value: text }
  })
}

interface Targets {
  readonly targets: readonly string[]
}

/** Returns the parts of all targets, in their order. */
export function relayTargets({ targets }: Targets): NamedTarget[] {
  return targets.map(partsOf)
}

/** Every URL that the relay sends to, of both kinds. */
export function relayUrls(settings: Targets): string[] {
  return relayTargets(settings).map(({ url }) => url)
}

/** The URLs of team workspaces among them. */
export function chatUrls(settings: Targets): string[] {
  return relayTargets(settings).flatMap(({ kind, url }) => (kind === 'chat' ? [url] : []))
}

/** Returns targets with the name of each: that of its URL in the settings, else the one that it had; null: none has it. */
export function withNames<T extends Pick<NamedTarget, 'name' | 'url'>>(found: readonly T[], settings: Targets): T[] {
  const named = relayTargets(settings)
  return found.map((one) => ({ ...one, name: (named.find(({ url }) => url === one.url) ?? one).name }))
}

function partsOf(text: string): NamedTarget {
  const [, name = null, rest = text] = NAMED.exec(text) ?? []
  const isChat = rest.startsWith(CHAT)
  return { name, url: isChat ? rest.slice(CHAT.length) : rest, kind: isChat ? 'chat' : 'standard' }
}
