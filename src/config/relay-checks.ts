import type { Checked } from './problems.ts'
import { decodedKey } from './secrets.ts'
import { isLoopback } from './urls.ts'

/** Problems of the relay's settings that show only together. Neither a target nor the secret is quoted. */
export function checkRelay({ values, refused, origins }: Checked): string[] {
  const problems: string[] = []
  const [targets, secret] = [values.get('relay.targets'), values.get('relay.secret')]
  const place = (name: string): string =>
    `relay.${name} (${origins.get(`relay.${name}`) ?? 'not set'})`
  if (typeof secret === 'string' && decodedKey(secret) === null)
    problems.push(
      `${place('secret')}: is not whsec_ and base64, as Standard Webhooks wants it. ` +
        'Give one that is, or null: the mirror then makes its own.',
    )
  if (refused.has('relay.targets') || !Array.isArray(targets)) return problems
  if (values.get('relay.allowPlainHttp') === true) return problems
  return [
    ...problems,
    ...(targets as string[]).flatMap((target, at) => {
      const { protocol, hostname } = new URL(target)
      if (protocol === 'https:' || isLoopback(hostname)) return []
      return [
        `${place('targets')}: (entry ${at + 1}) is plain http to another machine, where anybody on the way reads ` +
          'what is passed on. Use https, or set relay.allowPlainHttp: true for a network that is trusted as a whole.',
      ]
    }),
  ]
}
