/** A secret as it is now: the text, and the same read again from its file, true when it is another one. */
export interface CurrentSecret {
  readonly current: () => string
  readonly reload: () => boolean
}

/**
 * A credential in use. What it holds lies in closures only: neither `inspect` nor a log line can show it.
 */
export interface Authorization {
  /** The setting it comes from, for messages: `upstream.apiKey`. */
  readonly name: string
  /** The value of the Authorization header. Throws `upstream_auth` or `upstream_unreachable` when it cannot be had. */
  header(signal: AbortSignal): Promise<string>
  /** After a 401 for this header: another one to try once, or null when there is none. */
  renew(refused: string, signal: AbortSignal): Promise<string | null>
  /** The text without any secret that an answer may have echoed. */
  scrub: (text: string) => string
  /** The secrets that were sent of late, and those issued for them. Nothing is read for it. */
  secrets: () => readonly string[]
}

/** An API key as the remediation surface takes it: Basic, the key as user name, no password (spec section 5). */
export function basicKey(name: string, key: CurrentSecret): Authorization {
  return inTurn(name, key, (secret) => [basicOf(secret)])
}

/**
 * An access token, or the identity surface's API key, as Bearer. With `basicToo`, a 401 is followed by one attempt
 * as Basic: the contract shows the webhook settings with the token as user name.
 */
export function bearer(name: string, token: CurrentSecret, basicToo = false): Authorization {
  return inTurn(name, token, (secret) => [
    `Bearer ${secret}`,
    ...(basicToo ? [basicOf(secret)] : []),
  ])
}

function basicOf(user: string): string {
  return `Basic ${Buffer.from(`${user}:`).toString('base64')}`
}

/** Tries its forms in order and stays with the first that is not refused; another secret begins with the first again. */
function inTurn(
  name: string,
  source: CurrentSecret,
  formsOf: (secret: string) => readonly string[],
): Authorization {
  let secret = source.current()
  const recent = createRecent()
  recent.add(secret)
  let forms = formsOf(secret)
  let at = 0
  const look = (): void => {
    const current = source.current()
    if (current === secret) return
    secret = current
    recent.add(secret)
    forms = formsOf(secret)
    at = 0
  }
  return {
    name,
    header() {
      look()
      return Promise.resolve(forms[at] ?? '')
    },
    renew(refused) {
      source.reload()
      look()
      if (!forms.includes(refused)) return Promise.resolve(forms[at] ?? null) // it was another secret
      const next = forms.indexOf(refused) + 1
      at = next < forms.length ? next : 0
      return Promise.resolve(forms[next] ?? null)
    },
    scrub: (text) => scrub(text, [secret, ...forms]),
    secrets: recent.all,
  }
}

/** So many values of a credential are remembered: an answer may return one that was replaced a moment ago. */
const REMEMBERED = 6

/** The last values of a credential. `all` gives the same array until another value is added. */
export function createRecent() {
  let values: readonly string[] = []
  return {
    all: () => values,
    add(value: string): void {
      if (values.at(-1) === value) return
      values = [...values.filter((one) => one !== value), value].slice(-REMEMBERED)
    },
  }
}

/** Replaces each secret, whole or as the Base64 that a header carries, by stars. */
export function scrub(text: string, secrets: readonly string[]): string {
  return secrets
    .flatMap((secret) => [secret, secret.replace(/^(Basic|Bearer) /, '')])
    .filter((secret) => secret.length >= 4)
    .reduce((rest, secret) => rest.replaceAll(secret, '********'), text)
}
