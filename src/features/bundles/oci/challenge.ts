/** How a registry wants clients to log in (`WWW-Authenticate`); `realm` and `service` of Basic are not used. */
export interface Challenge {
  readonly scheme: 'basic' | 'bearer'
  readonly realm: string
  readonly service: string
}

const PARAMETER = /([a-z_]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))/gi

/** Reads the first challenge that is known of a header (RFC 9110, 11.6.1); null: there is none. */
export function readChallenge(header: string | string[] | undefined): Challenge | null {
  for (const text of [header ?? []].flat()) {
    const scheme = /(?:^|,\s*)(basic|bearer)(?:\s|$)/i.exec(text)
    if (scheme === null) continue
    const given = new Map<string, string>()
    for (const [, name = '', quoted, plain = ''] of text.slice(scheme.index).matchAll(PARAMETER))
      given.set(name.toLowerCase(), quoted?.replace(/\\(.)/g, '$1') ?? plain)
    const isBasic = scheme[1]?.toLowerCase() === 'basic'
    return {
      scheme: isBasic ? 'basic' : 'bearer',
      realm: given.get('realm') ?? '',
      service: given.get('service') ?? '',
    }
  }
  return null
}
