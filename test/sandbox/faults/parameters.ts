/** The parameters of a kind of fault. */
export interface Parameters {
  /** Those without which it means nothing, each with its type in JSON. */
  readonly needs: Readonly<Record<string, 'number' | 'string'>>
  /** Those that may be given. */
  readonly may: readonly string[]
}

/** Describes the parameters of a kind; `may` names the optional ones, with a space between. */
export function takes(may = '', needs: Parameters['needs'] = {}): Parameters {
  return { needs, may: may.split(' ').filter((name) => name !== '') }
}

/** Returns which parameters a fault is without, in words; null where it has all that it needs. */
export function missingIn(kinds: Readonly<Record<string, Parameters>>, fault: object): string | null {
  const given = new Map<string, unknown>(Object.entries(fault))
  const kind = String(given.get('kind'))
  const needs = Object.entries(kinds[kind]?.needs ?? {})
  const missing = needs.filter(([name, type]) => typeof given.get(name) !== type)
  if (missing.length === 0) return null
  return `the fault ${kind} needs ${missing.map(([name, type]) => `${name} (a ${type})`).join(' and ')}`
}

/** Returns a line for each kind with its parameters, the optional ones in brackets. */
export function listKinds(kinds: Readonly<Record<string, Parameters>>): string {
  const lines = Object.entries(kinds).map(([kind, { needs, may }]) => {
    const names = [...Object.keys(needs), ...may.map((name) => `[${name}]`)].join(', ')
    return `  ${kind.padEnd(19)}${names}`.trimEnd()
  })
  return lines.join('\n')
}
