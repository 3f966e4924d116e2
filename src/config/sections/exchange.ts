import { choice, integerSetting, list, nullable, number } from '../kinds/base.ts'
import { trustedKey } from '../kinds/keys.ts'
import { inbox } from '../kinds/inbox.ts'
import { directory, mirrorName } from '../kinds/names.ts'
import { endpointOptions, storeEndpoint, storeUrl } from '../kinds/urls.ts'
import { privateKeyFile } from '../kinds/webhooks.ts'

/** Sections of settings for data that move between mirrors: as bundles, and through the object store of a fleet. */
export const EXCHANGE = {
  bundle: {
    signingKeys: list(privateKeyFile()),
    trustedKeys: list(trustedKey()),
    expireDays: integerSetting({ min: 0, max: 36_500, example: 90 }),
    outbox: nullable(directory()),
    inbox: nullable(inbox()),
    keep: integerSetting({ min: 1, max: 10_000, example: 30 }),
    fullDays: number({ min: 0, max: 3650, example: 7 }),
  },
  fleet: {
    url: nullable(storeUrl()),
    endpoint: nullable(storeEndpoint()),
    role: choice(['auto', 'writer', 'sole-writer', 'reader', 'standby'], 'reader'),
    name: nullable(mirrorName()),
    leaseSeconds: integerSetting({ min: 3, max: 3600, example: 30 }),
    keepDays: number({ min: 1, max: 3650, example: 14 }),
  },
}

/** Returns what the settings of a fleet say in one text: how its store is asked, and what this mirror is called. */
export function fleetParts({ endpoint, role, name }: { endpoint: string | null; role: string; name: string | null }) {
  const [ownName = null, site = null] = name?.split('@') ?? []
  return { ...endpointOptions(endpoint), soleWriter: role === 'sole-writer', ownName, site }
}
