/** The current value of a secret; `reload` reads its file again and returns true when it changed. */
export interface CurrentSecret {
  readonly current: () => string
  readonly reload: () => boolean
}

/** A credential in use. Its secrets are in closures only: neither `inspect` nor a log line can show them. */
export interface Authorization {
  /** Setting of the credential, for messages: `upstream.apiKey`. */
  readonly name: string
  /**
   * Returns the value of the Authorization header. Throws `upstream_auth` or `upstream_unreachable` when it cannot be
   * obtained.
   */
  header(signal: AbortSignal): Promise<string>
  /** Returns another header to try once after a 401, or null when there is none. */
  renew(refused: string, signal: AbortSignal): Promise<string | null>
  /** Replaces secrets in a text, for example echoed in a response. */
  scrub: (text: string) => string
  /** Returns the recently sent secrets, and those issued for them. Reads no file. */
  secrets: () => readonly string[]
}

/**
 * Creates the credential of an API key for the remediation surface: Basic, the key as user name, no password (spec
 * section 5).
 */
export function basicKey(name: string, key: CurrentSecret): Authorization {
  return tryForms(name, key, (secret) => [basicOf(secret)])
}

/**
 * Creates a Bearer credential from an access token or the identity surface's API key. With `basicToo`, a 401 is
 * followed by one attempt with Basic: the contract shows the webhook settings with the token as user name.
 */
export function bearer(name: string, token: CurrentSecret, basicToo = false): Authorization {
  return tryForms(name, token, (secret) => [`Bearer ${secret}`, ...(basicToo ? [basicOf(secret)] : [])])
}

function basicOf(user: string): string {
  return `Basic ${Buffer.from(`${user}:`).toString('base64')}`
}

/** Tries header forms in order and keeps the first that is accepted; a changed secret starts with the first again. */
function tryForms(name: string, source: CurrentSecret, formsOf: (secret: string) => readonly string[]): Authorization {
  let secret = source.current()
  const recent = createRecent()
  recent.add(secret)
  let forms = formsOf(secret)
  let at = 0
  const refresh = (): void => {
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
      refresh()
      return Promise.resolve(forms[at] ?? '')
    },
    renew(refused) {
      source.reload()
      refresh()
      if (!forms.includes(refused)) return Promise.resolve(forms[at] ?? null) // it was another secret
      const next = forms.indexOf(refused) + 1
      at = next < forms.length ? next : 0
      return Promise.resolve(forms[next] ?? null)
    },
    scrub: (text) => scrub(text, [secret, ...forms]),
    secrets: recent.all,
  }
}

/** Number of recent values of a credential that are searched for: a response may contain one that was just replaced. */
const RECENT_VALUES = 6

/** Stores the last values of a credential. `all` returns the same array until a value is added. */
export function createRecent() {
  let values: readonly string[] = []
  return {
    all: () => values,
    add(value: string): void {
      if (values.at(-1) === value) return
      values = [...values.filter((one) => one !== value), value].slice(-RECENT_VALUES)
    },
  }
}

/** Replaces each secret, plain or as the Base64 of a header, with stars. */
export function scrub(text: string, secrets: readonly string[]): string {
  return secrets
    .flatMap((secret) => [secret, secret.replace(/^(Basic|Bearer) /, '')])
    .filter((secret) => secret.length >= 4)
    .reduce((rest, secret) => rest.replaceAll(secret, '********'), text)
}
