import { type Setting, text } from './kinds.ts'
import { urlFault } from './urls.ts'

/** A URL that events are passed on to. It may have a query: receivers like to keep a token there. */
export function relayTarget(): Setting<string> {
  const allowed = 'http or https URLs without user name, password or fragment'
  return text(allowed, 'https://ci.example.com/hooks/patchmirror', (value) => {
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
