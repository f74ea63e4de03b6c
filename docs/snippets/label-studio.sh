# LABEL_STUDIO_API_KEY is set; LABEL_STUDIO_URL and LABEL_STUDIO_PROJECT name the server and the project.
suffice label-studio --url "$LABEL_STUDIO_URL" --project "$LABEL_STUDIO_PROJECT" --folder mails.suffice --once
suffice status mails.suffice                 # is it enough?
suffice check mails.suffice --size 20        # draw a random check; its tasks come next in Label Studio
suffice label-studio --url "$LABEL_STUDIO_URL" --project "$LABEL_STUDIO_PROJECT" --folder mails.suffice --once
suffice export mails.suffice --out results   # labels, predictions for all other tasks, guarantee, report
