/** Text of a help page, below the list of options. */
export const CONFIG = `
Exit status of --check: 2 for any problem. --reload does what SIGHUP does, and
says what is in force and what needs a restart.
`
/** Text of a help page, below the list of options. */
export const APPROVE = `
Of a quarantined run it lets in exactly what that run refused. Of a run that
published doubtful changes, with a warning, it ends the warning: what was
published stays.
`
/** Text of a help page, below the list of options. */
export const DELIVERY = `
FILE is the text of the HTTP request (headers, an empty line, the body), or
JSON with "headers" and "body" or "bodyBase64". Every stored secret is tried
in every form taken; no secret, signature or body is printed. Exit status 0:
this mirror takes it; 1: it does not.
`
/** Text of a help page, below the list of options. */
export const MIRROR_DOCTOR = `
Works with and without a running daemon, and changes nothing without --repair.
What a failed check makes meaningless is skipped. Exit status 0: all is well;
1: a check failed; 3: a check warns. With --data 1 for any damage, 0 when it is
repaired. For a single webhook delivery that is refused, see "webhooks check".

The file of --save has the results, the status, the last runs, the settings
with their origin, and versions. Secrets are masked; names of hosts, users,
folders and images are not. Read it before you send it.
`
/** Text of a help page, below the list of options. */
export const FLEET_ROLLBACK = `
The content of that generation becomes the next one. No node syncs until
"fleet rollback --end".
`
/** Text of a help page, below the list of options. */
export const FLEET_CHECK = `
Real objects are written and deleted again. Each property is tried below probe/ of fleet.url: 32 conditional writes at
once, of which one must win; what was written is read, listed and continued at
once. A reader only reads. Exit status 2: the store cannot decide which mirror
leads (see fleet.role), or cannot keep a fleet at all; 1: it cannot be
reached, refuses the credentials, or lost what this mirror followed.
`
