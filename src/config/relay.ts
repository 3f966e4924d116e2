import { type Setting, choice, textSetting } from './kinds.ts'
import { urlFault } from './urls.ts'

/** A URL that events are passed on to. It may have a query: receivers like to keep a token there. */
export function relayTarget(): Setting<string> {
  const allowed = 'http or https URLs without user name, password or fragment'
  return textSetting(allowed, 'https://ci.example.com/hooks/patchmirror', (value) => {
    const url = value.trim()
    const fault = urlFault(url.replace(/\?.*$/s, ''))
    if (fault !== null) return { fault }
    if (url.includes('#')) return { fault: 'has a fragment' }
    const { username, password } = new URL(url)
    return username === '' && password === ''
      ? { value: url }
      : { fault: 'holds a user name or password: a token belongs into its path or query' }
  })
}

/** The forms of signatures that the relay sends; `both` in one header. */
export const RELAY_DIALECTS = ['standard', 'vendor', 'both'] as const

/** Which of them. */
export const relayDialect = () => choice(RELAY_DIALECTS, 'both')

/** What a message to a team workspace says, around the summary of the event. */
export function chatTemplate(): Setting<string> {
  const allowed = 'text of at most 1000 characters with {summary} in it'
  return textSetting(allowed, '"Patchmirror: {summary}"', (value) => {
    if (value.length > 1000) return { fault: 'is longer than 1000 characters' }
    return value.includes('{summary}') ? { value } : { fault: 'has no {summary}' }
  })
}

/** Every URL that the relay sends to, of both kinds. */
export function relayUrls(relay: {
  readonly targets: readonly string[]
  readonly chatTargets: readonly string[]
}): string[] {
  return [...relay.targets, ...relay.chatTargets]
}
