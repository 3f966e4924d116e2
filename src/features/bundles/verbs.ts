import { JSON_FLAG, type Verb, type VerbPart } from '../../cli/verbs/verb.ts'

/** Commands that carry data across an air gap. */
export const BUNDLE_VERBS: readonly Verb[] = [
  { path: 'bundle', summary: 'carry data across an air gap' },
  {
    path: 'bundle export',
    arguments: '<file>',
    summary: 'write what is mirrored into a signed bundle: a file, oci:FOLDER:TAG or oci://REGISTRY/REPOSITORY:TAG',
    options: [
      ['--since <state>', 'only what changed since an export, by its sequence or a snapshot id'],
      ['--for <need>', 'only what a mirror lacks that wrote this need file'],
      ['--thin', 'as small as can be, for a mirror that has exactly the state of --since or --for'],
      ['--sources <names>', 'of these sources alone, separated by commas'],
      ['--split <size>', 'cut it into parts of this size, such as 4 GB'],
      ['--expires <days>', 'another validity than bundle.expireDays; 0: for ever'],
      ['--force', 'replace a file of this name; a tag of oci:… names the newest without it'],
      ['--unsigned', 'without a signature: anybody could have made it'],
      JSON_FLAG,
    ],
    example: 'bundle export weekly.bundle --since 12',
    load: async () => (await import('./cli/export.ts')).exportCommand,
  },
  {
    path: 'bundle import',
    arguments: '<file...>',
    summary: 'take in bundles, the parts of one, or the artifacts of oci:… and oci://…',
    options: [
      ['--dry-run', 'say what would change, store nothing'],
      ['--allow-rollback', 'also import a bundle that is older than the stored data; the ledger records it'],
      ['--allow-unsigned', 'also import an unsigned bundle, which anyone could have made'],
      ['--again', 'write everything again from a full bundle, to repair damaged data'],
      ['--offline', 'make sure of it: any attempt to connect is an error'],
      JSON_FLAG,
    ],
    example: 'bundle import weekly.bundle --dry-run',
    load: async () => (await import('./cli/import.ts')).importCommand,
  },
  {
    path: 'bundle inspect',
    arguments: '[file...]',
    summary: 'what a bundle says of itself, or who this mirror is in bundles',
    options: [['--verify', 'read every byte of it'], JSON_FLAG],
    forms: [
      {
        options: [
          ['--new-identity', 'be another mirror in bundles: after a backup was restored, or a data folder copied'],
          ['--yes', 'with --new-identity: do not ask'],
          JSON_FLAG,
        ],
        load: async () => (await import('./cli/identity.ts')).newIdentityCommand,
      },
    ],
    after: '\nNothing is imported. Without a file: the identity of this mirror.',
    example: 'bundle inspect weekly.bundle --verify',
    load: async () => (await import('./cli/inspect.ts')).inspectCommand,
  },
  {
    path: 'bundle need',
    arguments: '<file>',
    summary: 'write down what is stored here, for an export made for it',
    options: [
      ['--brief', 'only which state: a kilobyte, for a mirror above that still knows it'],
      ['--sources <names>', 'of these sources alone, separated by commas; repeat it above'],
      ['--force', 'replace a file of this name'],
      JSON_FLAG,
    ],
    example: 'bundle need target.need --brief',
    load: async () => (await import('./cli/need.ts')).needCommand,
  },
  {
    path: 'bundle keygen',
    arguments: '<file>',
    summary: 'make a key pair that signs bundles: FILE and FILE.pub',
    options: [JSON_FLAG],
    example: 'bundle keygen /etc/patchmirror/bundle-key',
    load: async () => (await import('./cli/keygen.ts')).keygenCommand,
  },
]

/** What commands of the core do with bundles in mind. */
export const STATUS_PART: VerbPart = {
  path: 'status',
  forms: [
    {
      options: [
        [
          '--digest [content]',
          'one hash over all that is served, equal on both sides of a gap; "content": over the content alone, equal on mirrors that synced by themselves',
        ],
        JSON_FLAG,
      ],
      load: async () => (await import('./cli/need.ts')).digestCommand,
    },
  ],
}
