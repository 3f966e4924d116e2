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
}

/** An API key as the remediation surface takes it: Basic, the key as user name, no password (spec section 5). */
export function basicKey(name: string, key: string): Authorization {
  return fixed(name, key, [basicOf(key)])
}

/**
 * An access token, or the identity surface's API key, as Bearer. With `basicToo`, a 401 is followed by one attempt
 * as Basic: the contract shows the webhook settings with the token as user name.
 */
export function bearer(name: string, token: string, basicToo = false): Authorization {
  const forms = [`Bearer ${token}`, ...(basicToo ? [basicOf(token)] : [])]
  return fixed(name, token, forms)
}

function basicOf(user: string): string {
  return `Basic ${Buffer.from(`${user}:`).toString('base64')}`
}

/** Tries its forms in order and stays with the first that is not refused. */
function fixed(name: string, secret: string, forms: readonly string[]): Authorization {
  let at = 0
  return {
    name,
    header: () => Promise.resolve(forms[at] ?? ''),
    renew(refused) {
      const next = forms.indexOf(refused) + 1
      at = next < forms.length ? next : 0
      return Promise.resolve(forms[next] ?? null)
    },
    scrub: (text) => scrub(text, [secret, ...forms]),
  }
}

/** Replaces each secret, whole or as the Base64 that a header carries, by stars. */
export function scrub(text: string, secrets: readonly string[]): string {
  return secrets
    .flatMap((secret) => [secret, secret.replace(/^(Basic|Bearer) /, '')])
    .filter((secret) => secret.length >= 4)
    .reduce((rest, secret) => rest.replaceAll(secret, '********'), text)
}
