import type { Checked } from './problems.ts'
import { decodedKey } from './secrets.ts'
import { isLoopbackHost } from './urls.ts'

/** Problems of the relay's settings that show only together. Neither a target nor the secret is quoted. */
export function checkRelay({ values, refused, origins }: Checked): string[] {
  const problems: string[] = []
  const secret = values.get('relay.secret')
  const place = (name: string): string =>
    `relay.${name} (${origins.get(`relay.${name}`) ?? 'not set'})`
  const isVendor = values.get('relay.dialect') === 'vendor'
  if (typeof secret === 'string' && !isVendor && decodedKey(secret) === null)
    problems.push(
      `${place('secret')}: is not whsec_ and base64, as Standard Webhooks wants it. ` +
        'Give one that is, or null: the mirror then makes its own; or set relay.dialect: vendor.',
    )
  const names = ['targets', 'chatTargets'].filter((name) => !refused.has(`relay.${name}`))
  const urls = names.map((name) => [name, values.get(`relay.${name}`) as string[]] as const)
  const [targets = [], chat = []] = urls.map(([, list]) => list)
  if (targets.some((url) => chat.includes(url)))
    problems.push(
      `${place('chatTargets')}: a URL is in relay.targets, too. A target is one or the other.`,
    )
  if (values.get('relay.allowPlainHttp') === true) return problems
  return [
    ...problems,
    ...urls.flatMap(([name, list]) =>
      list.flatMap((target, at) => {
        const { protocol, hostname } = new URL(target)
        if (protocol === 'https:' || isLoopbackHost(hostname)) return []
        return [
          `${place(name)}: (entry ${at + 1}) is plain http to another machine, where anybody on the way reads ` +
            'what is passed on. Use https, or set relay.allowPlainHttp: true for a network that is trusted as a whole.',
        ]
      }),
    ),
  ]
}
